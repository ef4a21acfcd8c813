import { newId } from '@tapetree/session'
import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from 'react'
import { flushSync } from 'react-dom'
import type { PromptResult } from '@tapetree/client'
import { mayDo, rest, sentenceOf, storage, type Role } from '../server.ts'
import { acceptedFiles, attach, withFiles, type Attachment } from './attachments.ts'
import { completionsFor, ownCommandIn, wordAt, type Completion, type PageCommand } from './completion.ts'
import { inFrontOf } from './draft.ts'
import { Queue } from './queue.tsx'
import { orRefused } from './sent-messages.ts'
import { blobUrl, type OpenedSession } from './use-session.ts'

interface ComposerProps {
  opened: OpenedSession
  role: Role
  isRunning: boolean
  onProblem: (sentence: string) => void
  onPageCommand: (name: PageCommand) => void
  /** Gets the function that puts text in front of the draft. */
  prefill: RefObject<((text: string) => void) | undefined>
}

/** How a message is delivered: `prompt` starts a run, `steer` joins the current one, `follow_up` waits for its end. */
type Way = 'prompt' | 'steer' | 'follow_up'

export function Composer(props: ComposerProps): ReactNode {
  return mayDo(props.role, 'queue') ? <Form {...props} /> : <p className="faint padded">This device may only watch.</p>
}

function Form({ opened, role, isRunning, onProblem, onPageCommand, prefill }: ComposerProps): ReactNode {
  const { session, sent } = opened
  const { text, files, write, putBack, setFiles } = useDraft(session.sessionId, onProblem)
  const field = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const [isDropping, setDropping] = useState(false)
  const completion = useCompletion(opened, { text, field: field.current, write })
  const mayDrive = mayDo(role, 'drive')
  const usual: Way = !mayDrive ? 'follow_up' : isRunning ? 'steer' : 'prompt'
  const isEmpty = text.trim() === '' && files.length === 0

  const add = (given: Iterable<File>): void => {
    for (const file of given)
      void attach(file, (image) => rest.storeImage(session.sessionId, image)).then(
        (attachment) => setFiles((before) => [...before, attachment]),
        (error: unknown) => onProblem(sentenceOf(error)),
      )
  }
  const send = (way: Way): void => {
    if (isEmpty) return
    write('')
    const command = ownCommandIn(text)
    if (command) {
      const { own, argument } = command
      if ('page' in own) return onPageCommand(own.page)
      void (async () => own.run(opened, argument))().catch((error: unknown) => {
        putBack(text)
        onProblem(sentenceOf(error))
      })
      return
    }
    setFiles([])
    const message = withFiles(text, files)
    const imageIds = files.flatMap((each) => (each.type === 'image' ? [each.id] : []))
    void sent.send(message, newId(), (id) => orRefused(session, () => deliver(opened, { message, way, id, imageIds })))
  }
  useEffect(() => {
    prefill.current = (given) => {
      putBack(given)
      field.current?.focus()
    }
  })
  const onKey = (event: KeyboardEvent): void => {
    if (completion.onKey(event)) return
    const isPlain = !event.shiftKey && !event.altKey && !event.nativeEvent.isComposing
    // On a phone, Enter is the only way to begin a line.
    const hasKeyboard = matchMedia('(hover: hover)').matches
    if (event.key !== 'Enter' || !isPlain || !hasKeyboard) return
    event.preventDefault()
    send(event.ctrlKey || event.metaKey ? (isRunning ? 'follow_up' : usual) : usual)
  }

  return (
    <>
      <Queue opened={opened} role={role} onEdit={putBack} onProblem={onProblem} />
      <form
        className={isDropping ? 'composer dropping' : 'composer'}
        onSubmit={(event) => {
          event.preventDefault()
          send(usual)
        }}
        onDragOver={(event) => {
          event.preventDefault()
          setDropping(true)
        }}
        onDragLeave={() => setDropping(false)}
        onDrop={(event) => {
          event.preventDefault()
          setDropping(false)
          add(event.dataTransfer.files)
        }}
      >
        {completion.list}
        {files.length > 0 && (
          <ul className="attachments" aria-label="Attachments">
            {files.map((each, index) => (
              <li key={index}>
                {each.type === 'image' && <img alt="" src={blobUrl(session.sessionId, each.id)} />}
                <span>{each.name}</span>
                <button
                  type="button"
                  className="quiet tiny"
                  aria-label={`Remove ${each.name}`}
                  onClick={() => setFiles(files.toSpliced(index, 1))}
                >
                  ✕
                </button>
              </li>
            ))}
          </ul>
        )}
        <div className="composer-line">
          <button
            type="button"
            className="quiet attach"
            aria-label="Attach files"
            title="Attach files"
            onClick={() => picker.current?.click()}
          >
            +
          </button>
          <input
            ref={picker}
            type="file"
            className="unseen"
            tabIndex={-1}
            aria-label="Files to attach"
            multiple
            accept={acceptedFiles}
            onChange={(event) => {
              add([...(event.target.files ?? [])])
              event.target.value = ''
            }}
          />
          <textarea
            ref={field}
            id="message"
            aria-label="Message"
            {...completion.attributes}
            placeholder={isRunning ? 'Steer the agent, or queue a message' : 'Message the agent'}
            rows={1}
            value={text}
            onChange={(event) => write(event.target.value)}
            onKeyDown={onKey}
            onPaste={(event) => {
              const { files: pasted } = event.clipboardData
              if (pasted.length === 0) return
              event.preventDefault()
              add(pasted)
            }}
          />
          <div className="composer-buttons">
            {isRunning && mayDrive && (
              <button
                type="button"
                className="no"
                onClick={() => void session.abort().catch((error: unknown) => onProblem(sentenceOf(error)))}
              >
                Stop
              </button>
            )}
            {isRunning && (
              <button
                type="button"
                className="quiet"
                disabled={isEmpty}
                title="Deliver it after this run (Ctrl+Enter)"
                onClick={() => send('follow_up')}
              >
                Queue
              </button>
            )}
            {(!isRunning || mayDrive) && (
              <button disabled={isEmpty} title={isRunning ? 'Deliver it during this run' : undefined}>
                {usual === 'steer' ? 'Steer' : usual === 'prompt' ? 'Send' : 'Queue'}
              </button>
            )}
          </div>
        </div>
      </form>
    </>
  )
}

/** Longer messages do not fit into a frame, so they are sent by a request. */
const maxFrameText = 60_000

async function deliver(
  { session }: OpenedSession,
  { message, way, id, imageIds }: { message: string; way: Way; id: string; imageIds: string[] },
): Promise<PromptResult | undefined> {
  const images = imageIds.length > 0 ? { imageIds } : {}
  if (message.length > maxFrameText) {
    const whenBusy = way === 'steer' ? 'steer' : 'queue'
    return rest.prompt(session.sessionId, { text: message, ...images, whenBusy }, { commandId: id })
  }
  if (way === 'steer') return session.steer(message, { id, ...images })
  return way === 'follow_up' ? session.followUp(message, { id, ...images }) : session.prompt(message, { id, ...images })
}

interface Draft {
  text: string
  files: readonly Attachment[]
  write: (text: string) => void
  /** Puts text in front of the draft. */
  putBack: (text: string) => void
  setFiles: (next: readonly Attachment[] | ((before: readonly Attachment[]) => readonly Attachment[])) => void
}

/** What was typed and attached stays in the browser, for each session. Says once if the browser cannot keep it. */
function useDraft(sessionId: string, onProblem: (sentence: string) => void): Draft {
  const key = `tapetree-draft-${sessionId}`
  const [{ text, files }, setDraft] = useState(() => readDraft(storage(() => localStorage.getItem(key)) ?? ''))
  const hasFailed = useRef(false)
  useEffect(() => {
    const isEmpty = text === '' && files.length === 0
    const isStored = storage(() => {
      if (isEmpty) localStorage.removeItem(key)
      else localStorage.setItem(key, JSON.stringify({ text, files }))
      return true
    })
    if (!isStored && !isEmpty && !hasFailed.current)
      onProblem(
        'This browser cannot store your draft: its storage is full or turned off. A reload would lose the text.',
      )
    hasFailed.current = !isStored
  }, [key, text, files])
  return {
    text,
    files,
    write: (next) => setDraft((draft) => ({ ...draft, text: next })),
    putBack: (given) => setDraft((draft) => ({ ...draft, text: inFrontOf(draft.text, given) })),
    setFiles: (next) =>
      setDraft((draft) => ({ ...draft, files: typeof next === 'function' ? next(draft.files) : next })),
  }
}

function readDraft(stored: string): { text: string; files: readonly Attachment[] } {
  try {
    const { text, files } = JSON.parse(stored) as { text: unknown; files: unknown }
    return { text: String(text), files: Array.isArray(files) ? (files as Attachment[]) : [] }
  } catch {
    return { text: '', files: [] }
  }
}

interface Completing {
  list: ReactNode
  attributes: Record<string, string>
  /** Returns whether the key was used. */
  onKey: (event: KeyboardEvent) => boolean
}

/** Offers commands after `/` and files after `@`. */
function useCompletion(
  opened: OpenedSession,
  { text, field, write }: { text: string; field: HTMLTextAreaElement | null; write: (text: string) => void },
): Completing {
  const id = useId()
  const [offers, setOffers] = useState<{ for: string; all: readonly Completion[] }>({ for: '', all: [] })
  const [chosen, setChosen] = useState(0)
  const [dismissed, setDismissed] = useState('')
  useEffect(() => {
    const word = wordAt(text, field?.selectionStart ?? text.length)
    if (!word) return setOffers({ for: text, all: [] })
    let isCurrent = true
    void completionsFor(word, opened, rest).then(
      (all) => {
        if (!isCurrent) return
        setOffers({ for: text, all })
        setChosen(0)
      },
      () => undefined,
    )
    return () => void (isCurrent = false)
  }, [text, opened, field])

  const all = offers.for === text && dismissed !== text ? offers.all : []
  const take = (offer: Completion | undefined): void => {
    const cursor = field?.selectionStart ?? text.length
    const word = wordAt(text, cursor)
    if (!offer || !word) return
    const next = `${text.slice(0, word.start)}${offer.text}${offer.isOpen ? '' : ' '}`
    // At once: the next key may come before the next frame, and would be in front of it.
    flushSync(() => write(next + text.slice(cursor)))
    field?.focus()
    field?.setSelectionRange(next.length, next.length)
  }
  const keys: Record<string, () => void> = {
    ArrowDown: () => setChosen((chosen + 1) % all.length),
    ArrowUp: () => setChosen((chosen + all.length - 1) % all.length),
    Tab: () => take(all[chosen]),
    Enter: () => take(all[chosen]),
    Escape: () => setDismissed(text),
  }
  return {
    onKey: (event) => {
      const use = all.length > 0 && !event.nativeEvent.isComposing ? keys[event.key] : undefined
      // A complete command is sent.
      const isComplete = event.key === 'Enter' && all[chosen]?.text === text.trim()
      if (!use || isComplete || event.shiftKey) return false
      event.preventDefault()
      event.stopPropagation()
      use()
      return true
    },
    attributes: {
      'aria-autocomplete': 'list',
      ...(all.length > 0 && { 'aria-controls': id, 'aria-activedescendant': `${id}-${chosen}` }),
    },
    list: all.length > 0 && (
      <ul className="completions" id={id} role="listbox" aria-label="Completions">
        {all.map((offer, index) => (
          <li
            key={offer.text}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            // The field keeps the focus.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => take(offer)}
          >
            <code>{offer.text}</code> <span className="faint">{offer.detail}</span>
          </li>
        ))}
      </ul>
    ),
  }
}
