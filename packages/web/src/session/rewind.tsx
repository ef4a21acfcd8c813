import type { RestBodies } from '@tapetree/client'
import type { RestResults } from '@tapetree/client/types'
import { spellInvisible } from '@tapetree/session/screen'
import { useCallback, useState, type ReactNode } from 'react'
import { Dialog } from '../dialog.tsx'
import { LoadState } from '../screen.tsx'
import { rest, sentenceOf } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import './rewind.css'

type Rewound = RestResults['rewind']
type Files = NonNullable<Rewound['files']>
type FileChange = Files['changes'][number]
type What = NonNullable<RestBodies['rewind']['what']>
type Choice = NonNullable<RestBodies['rewind']['conflicts']>

/** What went back. */
export interface Done {
  sentences: readonly string[]
  /** The text of the message before which the conversation continues. */
  text?: string
  /** Whether it can be taken back. */
  canUndo: boolean
}

interface RewindDialogProps {
  sessionId: string
  /** Where to go back to. Absent: takes back the last step. */
  entryId: string | undefined
  onDone: (done: Done) => void
  onClose: () => void
}

/** Shows what would go back, asks about conflicts, and does it. */
export function RewindDialog({ sessionId, entryId, onDone, onClose }: RewindDialogProps): ReactNode {
  const load = useCallback(
    (signal: AbortSignal) => rest.rewind(sessionId, { ...targetOf(entryId), dryRun: true }, { signal }),
    [sessionId, entryId],
  )
  const { value, problem, reload } = useLoaded(load)
  return (
    <Dialog title={entryId === undefined ? 'Take back the last step' : 'Go back to here'} onClose={onClose}>
      {value ? (
        <RewindForm sessionId={sessionId} entryId={entryId} preview={value} onDone={onDone} onClose={onClose} />
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </Dialog>
  )
}

/** Takes back the last step without a dialog. Undefined if a file has a conflict, so the user has to be asked. */
export async function takeBack(sessionId: string): Promise<Done | undefined> {
  const preview = await rest.rewind(sessionId, { dryRun: true })
  if (conflictsIn(preview.files).length > 0) return undefined
  const done = await rest.rewind(sessionId, {})
  return { sentences: ['Took it back.', ...filesText(done.files)], canUndo: false }
}

/** Ends a rewind of files that was interrupted. */
export async function endInterrupted(sessionId: string, interrupted: 'finish' | 'undo'): Promise<Done> {
  const done = await rest.rewind(sessionId, { interrupted })
  return { sentences: [interrupted === 'finish' ? 'Finished.' : 'Undone.', ...filesText(done.files)], canUndo: false }
}

const parts: readonly { what: What; name: string; detail: string }[] = [
  { what: 'both', name: 'Conversation and files', detail: 'As if this message had not been sent.' },
  { what: 'talk', name: 'Only the conversation', detail: 'The files stay as they are.' },
  { what: 'files', name: 'Only the files', detail: 'The conversation continues from its end.' },
]

function RewindForm({
  sessionId,
  entryId,
  preview,
  onDone,
  onClose,
}: RewindDialogProps & { preview: Rewound }): ReactNode {
  const { files } = preview
  const conflicts = conflictsIn(files)
  const hasWork = files?.changes.some(({ action }) => action !== 'kept') ?? false
  const [chosen, setChosen] = useState<What>(hasWork ? 'both' : 'talk')
  const [choices, setChoices] = useState<ReadonlyMap<string, Choice>>(new Map())
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const isStep = entryId !== undefined
  const withFiles = !isStep || chosen !== 'talk'
  const go = async (): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      const decided = conflicts.map(({ path }) => ({ path, choice: choices.get(path) ?? ('keep' as const) }))
      const done = await rest.rewind(sessionId, {
        ...targetOf(entryId),
        ...(isStep && { what: chosen }),
        ...(withFiles && decided.length > 0 && { choices: decided }),
      })
      const talk = !isStep ? 'Took it back.' : chosen === 'files' ? undefined : 'Went back in the conversation.'
      const fileSentences = withFiles ? filesText(done.files) : ['The files stay as they are.']
      onDone({
        sentences: [...(talk === undefined ? [] : [talk]), ...fileSentences],
        ...(isStep && done.text !== undefined && { text: done.text }),
        canUndo: isStep,
      })
    } catch (error) {
      setProblem(sentenceOf(error))
      setBusy(false)
    }
  }
  return (
    <form
      className="rewind"
      onSubmit={(event) => {
        event.preventDefault()
        void go()
      }}
    >
      {isStep && hasWork && (
        <fieldset>
          <legend className="unseen">What goes back</legend>
          {parts.map(({ what, name, detail }) => (
            <label key={what} className="choice">
              <input type="radio" name="what" checked={chosen === what} onChange={() => setChosen(what)} />
              <span>
                <b>{name}</b>
                <small>{detail}</small>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {isStep && !hasWork && (
        <p>
          The conversation continues before this message.{' '}
          {files?.problem === undefined ? 'No file changes.' : `The files stay as they are: ${files.problem}`}
        </p>
      )}
      {!isStep && !hasWork && <p>The conversation continues where it was before. No file changes.</p>}
      {withFiles && files && files.changes.length > 0 && (
        <PlannedFiles
          files={files}
          choices={choices}
          onChoose={(paths, choice) =>
            setChoices(new Map([...choices, ...paths.map((path) => [path, choice] as const)]))
          }
        />
      )}
      {problem !== undefined && (
        <p className="notice failed" role="alert">
          {problem}
        </p>
      )}
      <div className="buttons rewind-buttons">
        <button disabled={isBusy}>{isBusy ? 'Going back…' : isStep ? 'Go back' : 'Take it back'}</button>
        <button type="button" className="quiet" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  )
}

interface PlannedFilesProps {
  files: Files
  choices: ReadonlyMap<string, Choice>
  onChoose: (paths: readonly string[], choice: Choice) => void
}

/** What happens to each file. */
function PlannedFiles({ files, choices, onChoose }: PlannedFilesProps): ReactNode {
  const conflicts = conflictsIn(files)
  const others = files.changes.filter(({ action }) => action === 'kept')
  const back = files.changes.filter(({ action }) => action !== 'kept' && action !== 'conflict')
  return (
    <>
      {conflicts.length > 0 && (
        <section aria-label="Conflicts">
          <h3>
            {counted(conflicts.length, 'conflict')} <small>The agent and others changed these files.</small>
          </h3>
          {conflicts.length > 1 && (
            <div className="buttons">
              {(['keep', 'take'] as const).map((choice) => (
                <button
                  key={choice}
                  type="button"
                  className="quiet small"
                  onClick={() =>
                    onChoose(
                      conflicts.map(({ path }) => path),
                      choice,
                    )
                  }
                >
                  {choice === 'keep' ? 'Keep all' : 'Let all go back'}
                </button>
              ))}
            </div>
          )}
          <ul className="rewind-files">
            {conflicts.map((file) => (
              <li key={file.path}>
                <Path file={file} />
                <Conflict file={file} chosen={choices.get(file.path) ?? 'keep'} onChoose={onChoose} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {back.length > 0 && (
        <section aria-label="Files that go back">
          <h3>{counted(back.length, 'file')} would go back</h3>
          <FileList files={back} />
        </section>
      )}
      {others.length > 0 && (
        <section aria-label="Files that stay">
          <h3>
            {counted(others.length, 'file')} would stay <small>Only others changed them.</small>
          </h3>
          <FileList files={others} />
        </section>
      )}
    </>
  )
}

const choiceNames: Record<Choice, { name: string; title: string }> = {
  keep: { name: 'Keep', title: 'Keep it as it is now' },
  take: { name: 'Go back', title: 'Let it go back; taking back this step brings the changes of others again' },
  merge: { name: 'Merge', title: 'Take back only what the agent changed' },
}

function Conflict(given: { file: FileChange; chosen: Choice; onChoose: PlannedFilesProps['onChoose'] }): ReactNode {
  const { file, chosen, onChoose } = given
  const offered = (['keep', 'take', 'merge'] as const).filter((each) => each !== 'merge' || file.canMerge)
  return (
    <div className="segments" role="radiogroup" aria-label={`What happens to ${spellInvisible(file.path)}`}>
      {offered.map((choice) => (
        <label key={choice} title={choiceNames[choice].title}>
          <input
            type="radio"
            name={`conflict-${file.path}`}
            checked={chosen === choice}
            onChange={() => onChoose([file.path], choice)}
          />
          {choiceNames[choice].name}
        </label>
      ))}
    </div>
  )
}

/** Longer lists are cut until the user asks for all of it. */
const shownFiles = 20

function FileList({ files }: { files: readonly FileChange[] }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? files : files.slice(0, shownFiles)
  return (
    <>
      <ul className="rewind-files">
        {shown.map((file) => (
          <li key={file.path}>
            <Path file={file} />
          </li>
        ))}
      </ul>
      {shown.length < files.length && (
        <button type="button" className="quiet small" onClick={() => setWhole(true)}>
          Show all {files.length} files
        </button>
      )}
    </>
  )
}

const changeNames: Record<FileChange['change'], string> = {
  added: 'comes back',
  changed: 'changes',
  removed: 'is deleted',
}

function Path({ file: { path, change, action } }: { file: FileChange }): ReactNode {
  return (
    <span className="rewind-path">
      <code>{spellInvisible(path)}</code> {action !== 'kept' && <small>{changeNames[change]}</small>}
    </span>
  )
}

function targetOf(entryId: string | undefined): { entryId?: string } {
  return entryId === undefined ? {} : { entryId }
}

function conflictsIn(files: Files | undefined): FileChange[] {
  return files?.changes.filter(({ action }) => action === 'conflict') ?? []
}

/** What happened to the files, in sentences. */
function filesText(files: Files | undefined): string[] {
  if (!files) return []
  const back = files.changes.filter(
    ({ action, path }) => (action === 'restored' || action === 'merged') && !files.skipped.includes(path),
  )
  const conflicts = conflictsIn(files)
  return [
    back.length === 0 ? 'No file changed.' : `Put back ${counted(back.length, 'file')}: ${named(back)}.`,
    ...(conflicts.length > 0 ? [`Kept as they are: ${named(conflicts)}.`] : []),
    ...(files.skipped.length > 0
      ? [`Not put back, because someone changed them meanwhile: ${named(files.skipped.map((path) => ({ path })))}.`]
      : []),
    ...files.keptCopies.map(
      ({ path, copy }) => `A version of ${spellInvisible(path)} that was being written is in ${spellInvisible(copy)}.`,
    ),
  ]
}

const namedFiles = 5

function named(files: readonly Pick<FileChange, 'path'>[]): string {
  const names = files.slice(0, namedFiles).map(({ path }) => spellInvisible(path))
  const more = files.length - names.length
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ')
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
