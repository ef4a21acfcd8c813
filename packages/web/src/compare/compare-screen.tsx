import type { RestResults } from '@tapetree/client/types'
import { elapsedText, parseDiff, spellInvisible } from '@tapetree/session/screen'
import { useCallback, useState, type ReactNode } from 'react'
import { entryLink, screenLink } from '../route.ts'
import { LoadState, Screen } from '../screen.tsx'
import { rest } from '../server.ts'
import { Diff } from '../session/diff.tsx'
import { useLoaded } from '../use-loaded.ts'
import './compare.css'

type Side = RestResults['compare']['left']

interface CompareScreenProps {
  sessionId: string
  left: string
  right: string
}

/** Two branches from the place where they part. */
export function CompareScreen({ sessionId, left, right }: CompareScreenProps): ReactNode {
  const load = useCallback(
    (signal: AbortSignal) => rest.compare(sessionId, { left, right }, signal),
    [sessionId, left, right],
  )
  const { value, problem, reload } = useLoaded(load)
  return (
    <Screen title="Compare two branches" back={{ href: screenLink(sessionId, 'tree'), name: 'Back to the tree' }}>
      {value ? (
        <div className="comparison">
          <p className="faint">
            {value.commonAncestor === null ? (
              'The branches have nothing in common.'
            ) : (
              <>
                They part after <a href={entryLink(sessionId, value.commonAncestor)}>this entry</a>.
              </>
            )}
          </p>
          {value.files && <ChangedFiles files={value.files} sessionId={sessionId} left={left} right={right} />}
          <div className="sides">
            <SideColumn name="First branch" side={value.left} sessionId={sessionId} />
            <SideColumn name="Second branch" side={value.right} sessionId={sessionId} />
          </div>
        </div>
      ) : (
        <LoadState problem={problem} onRetry={reload} />
      )}
    </Screen>
  )
}

function SideColumn({ name, side, sessionId }: { name: string; side: Side; sessionId: string }): ReactNode {
  const shown = side.entries.filter(({ type }) => type !== 'label' && type !== 'session_info')
  return (
    <section aria-label={name}>
      <h2>{name}</h2>
      <dl>
        <dt>Entries</dt>
        <dd>{side.entryCount}</dd>
        <dt>Cost</dt>
        <dd>${side.usage.cost.toFixed(4)}</dd>
        <dt>Tokens</dt>
        <dd>
          {side.usage.inputTokens.toLocaleString('en')} in, {side.usage.outputTokens.toLocaleString('en')} out
        </dd>
        <dt>Work</dt>
        <dd>{elapsedText(side.runMs)}</dd>
        {side.checks.length > 0 && (
          <>
            <dt>Checks</dt>
            <dd>
              {side.checks.map(({ command, exitCode, timestamp }) => (
                <div key={timestamp}>
                  <span className={`sign ${exitCode === 0 ? 'done' : 'failed'}`}>{exitCode === 0 ? '✓' : '✗'}</span>{' '}
                  <code>{spellInvisible(command)}</code>{' '}
                  {exitCode === 0 ? 'passed' : `failed with exit code ${exitCode}`}
                </div>
              ))}
            </dd>
          </>
        )}
      </dl>
      {side.entryCount > side.entries.length && (
        <p className="faint">Only the newest {side.entries.length} are shown.</p>
      )}
      {shown.length === 0 && <p className="faint">It ends where the other one begins.</p>}
      <ol>
        {shown.map((entry) => (
          <li key={entry.id} data-role={entry.role ?? entry.type}>
            <a href={entryLink(sessionId, entry.id)}>{entry.role ?? entry.type.replaceAll('_', ' ')}</a>
            {entry.label !== undefined && <span className="tag">{entry.label}</span>}
            <div className="plain">{entry.preview || '(no text)'}</div>
          </li>
        ))}
      </ol>
    </section>
  )
}

type Files = NonNullable<RestResults['compare']['files']>
type FileDiff = Files['changes'][number]

interface Compared {
  sessionId: string
  left: string
  right: string
}

/** How the files of the first branch became those of the second. */
function ChangedFiles({ files, ...compared }: Compared & { files: Files }): ReactNode {
  const { problem, changes, changedCount, addedLines, removedLines } = files
  return (
    <section className="changed-files" aria-label="Files">
      <h2>Files</h2>
      {problem !== undefined ? (
        <p className="faint">They cannot be compared: {problem}</p>
      ) : changedCount === 0 ? (
        <p className="faint">The files are the same.</p>
      ) : (
        <p className="faint">
          {changedCount === 1 ? '1 file differs' : `${changedCount} files differ`} from the first branch to the second:{' '}
          <LineCounts addedLines={addedLines} removedLines={removedLines} />
        </p>
      )}
      <ul>
        {changes.map((file) => (
          <li key={file.path}>
            <ChangedFile file={file} {...compared} />
          </li>
        ))}
      </ul>
      {changedCount > changes.length && <p className="faint">Only the first {changes.length} are shown.</p>}
    </section>
  )
}

const changeNames: Record<FileDiff['change'], string> = { added: 'added', changed: 'changed', removed: 'removed' }

function ChangedFile({ file, ...compared }: Compared & { file: FileDiff }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const { path, change, isBinary, addedLines, removedLines } = file
  const facts = (
    <>
      <code>{spellInvisible(path)}</code> <small>{changeNames[change]}</small>{' '}
      {isBinary ? <small>not text</small> : <LineCounts addedLines={addedLines} removedLines={removedLines} />}
    </>
  )
  if (isBinary) return <p className="changed-file">{facts}</p>
  return (
    <>
      <button className="fold changed-file" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {facts}
      </button>
      {isOpen && <FileDiffView path={path} {...compared} />}
    </>
  )
}

function LineCounts({ addedLines, removedLines }: Pick<FileDiff, 'addedLines' | 'removedLines'>): ReactNode {
  return (
    <span className="line-counts">
      <span className="added-count">+{addedLines}</span> <span className="removed-count">−{removedLines}</span>
    </span>
  )
}

/** The diff is loaded when its file is opened. */
function FileDiffView({ path, sessionId, left, right }: Compared & { path: string }): ReactNode {
  const load = useCallback(
    async (signal: AbortSignal) => {
      const { files } = await rest.compare(sessionId, { left, right, diff: 'true', path }, signal)
      const file = files?.changes.find((each) => each.path === path)
      return { diff: parseDiff(file?.patch ?? ''), isCut: file?.isCut === true }
    },
    [sessionId, left, right, path],
  )
  const { value, problem, reload } = useLoaded(load)
  if (!value) return <LoadState problem={problem} onRetry={reload} />
  return (
    <>
      <Diff files={value.diff} />
      {value.isCut && <p className="faint">The diff is too long: the rest is not shown.</p>}
    </>
  )
}
