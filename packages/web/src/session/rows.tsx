import { readsText, toldDiagnostics, type TranscriptRow } from '@tapetree/session/screen'
import type { BashItem, GapItem, InFlightPart, ToolCallPart, Transcript, TranscriptItem } from '@tapetree/session/view'
import { memo, useContext, useState, type ReactNode } from 'react'
import { CopyButton } from '../copy-button.tsx'
import { Markdown } from '../markdown/markdown.tsx'
import { ToolCall } from './tool-call.tsx'
import { contentText, outputText, textIn } from './content-text.ts'
import { Images, Picture } from './images.tsx'
import { GoBackContext, isLive, useRowState, useSelected, type OpenedSession } from './use-session.ts'

/** Draws again only if its row changes. What it needs from the open session, it selects itself. */
export const Row = memo(function Row({ row }: { row: TranscriptRow }): ReactNode {
  switch (row.type) {
    case 'item':
      return <ItemRow item={row.item} />
    case 'reads':
      return <ReadsRow calls={row.calls} />
    case 'error':
      return <p className="notice failed">{row.item.error?.message}</p>
    case 'part': {
      const { part } = row
      switch (part.type) {
        case 'text':
          return (
            <article className="answer">
              <Markdown text={part.text} />
              <div className="row-tools">
                <CopyButton text={part.text} />
              </div>
            </article>
          )
        case 'reasoning':
          return <Reasoning text={part.text} />
        case 'image':
          return <Picture source={part.source} />
        case 'tool_call':
          return <ToolCall call={part} seq={row.item.seq} />
        default:
          part satisfies never
          return null
      }
    }
    default:
      row satisfies never
      return null
  }
})

/** Text that is still being written. */
export function LiveRow({ opened, rowKey }: { opened: OpenedSession; rowKey: string }): ReactNode {
  const part = useSelected(opened, ({ session }) => livePart(session.transcript, rowKey))
  if (!part) return null
  if (part.kind === 'reasoning') return <Reasoning text={part.text} isGrowing />
  if (part.kind === 'text')
    return (
      <article className="answer" aria-busy="true">
        <Markdown text={part.text} isGrowing />
      </article>
    )
  return <p className="faint">Preparing a tool call… ({part.off + part.text.length} characters)</p>
}

/** The text of a live row. */
function livePart({ inFlight }: Transcript, rowKey: string): InFlightPart | undefined {
  const at = rowKey.lastIndexOf('/')
  const part = Number(rowKey.slice(at + 1))
  return inFlight.get(rowKey.slice(0, at))?.parts.find((each) => each.part === part && each.kind !== 'tool_output')
}

function Reasoning({ text, isGrowing = false }: { text: string; isGrowing?: boolean }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="reasoning">
      <button className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isGrowing ? 'Thinking…' : 'Thought'} <span className="faint">{isOpen ? '' : firstWords(text)}</span>
      </button>
      {isOpen && <Markdown text={text} isGrowing={isGrowing} />}
    </div>
  )
}

function firstWords(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ').slice(0, 120)
}

/** Read-only calls in one line; an open question shows its call. */
function ReadsRow({ calls }: { calls: readonly ToolCallPart[] }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const isActive = useRowState((opened) => calls.some((call) => isLive(opened, call))) ?? false
  const isAsked = useRowState(({ session }) =>
    session.transcript.permissions.some((request) => calls.some(({ callId }) => callId === request.callId)),
  )
  const failed = calls.filter(({ result }) => result?.isError).length
  const isShown = isOpen || isAsked === true
  return (
    <div className="call">
      <button className="fold" aria-expanded={isShown} onClick={() => setOpen(!isOpen)}>
        <span className={`sign ${isActive ? 'running' : 'done'}`} aria-hidden="true">
          {isActive ? '●' : '✓'}
        </span>{' '}
        {capitalized(readsText(calls))}
        {failed > 0 && <span className="faint"> · {failed} failed</span>}
      </button>
      {isShown && (
        <div className="reads">
          {calls.map((call, index) => (
            <ToolCall key={`${call.callId}-${index}`} call={call} />
          ))}
        </div>
      )}
    </div>
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function ItemRow({ item }: { item: Exclude<TranscriptItem, { type: 'assistant' }> }): ReactNode {
  switch (item.type) {
    case 'user':
      return (
        <article className="mine">
          <p className="plain">{textIn(item.content)}</p>
          <Images content={item.content} />
          <div className="row-tools">
            <span className="delivered" title="Delivered">
              ✓<span className="unseen"> Delivered</span>
            </span>
            <CopyButton text={textIn(item.content)} />
            <GoBackButton entryId={item.id} />
          </div>
        </article>
      )
    case 'tool_result':
      return (
        <div className="call">
          {item.results.map(({ content }, index) => (
            <pre key={index} className="output">
              {outputText(contentText(content))}
            </pre>
          ))}
        </div>
      )
    case 'bash':
      return <CommandRow item={item} />
    case 'compaction':
      return <Summary title="Earlier messages were summarized" text={item.summary} />
    case 'branch_summary':
      return <Summary title="Summary of another branch" text={item.summary} />
    case 'custom':
      return item.custom.type === 'message' ? <NoteRow text={contentText(item.custom.content)} /> : null
    case 'system':
      return null
    case 'model':
      return (
        <p className="fact">
          Model: {item.provider}/{item.modelId}
        </p>
      )
    case 'thinking_level':
      return <p className="fact">Thinking: {item.thinkingLevel}</p>
    case 'gap':
      return <p className="fact">{gapText(item.gap)}</p>
    default:
      item satisfies never
      return null
  }
}

function GoBackButton({ entryId }: { entryId: string }): ReactNode {
  const goBack = useContext(GoBackContext)
  if (!goBack) return null
  return (
    <button className="quiet tiny" onClick={() => goBack(entryId)}>
      Go back to here…
    </button>
  )
}

function CommandRow({ item: { command, output, exitCode, cancelled } }: { item: BashItem }): ReactNode {
  const note = cancelled ? 'stopped' : `exit code ${exitCode ?? '?'}`
  return (
    <div className="call">
      <p className="call-head">
        <span className={`sign ${exitCode === 0 ? 'done' : 'failed'}`} aria-hidden="true">
          {exitCode === 0 ? '✓' : '✗'}
        </span>{' '}
        <b>You ran</b> <code>{command}</code> <span className="faint">{note}</span>
      </p>
      {output !== '' && (
        <pre className="output" tabIndex={0}>
          {outputText(output)}
        </pre>
      )}
    </div>
  )
}

/** What the model was told: new errors after its edits, or something about its environment. */
function NoteRow({ text }: { text: string }): ReactNode {
  const told = toldDiagnostics(text)
  const [isOpen, setOpen] = useState(false)
  if (!told) return <Summary title="A note to the model" text={text} />
  return (
    <div className="call">
      <button className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span className="sign failed" aria-hidden="true">
          !
        </span>{' '}
        {told.title}
      </button>
      {isOpen && (
        <pre className="output" tabIndex={0}>
          {told.lines.join('\n')}
        </pre>
      )}
    </div>
  )
}

function Summary({ title, text }: { title: string; text: string }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="reasoning">
      <button className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {title}
      </button>
      {isOpen && <Markdown text={text} />}
    </div>
  )
}

function gapText(gap: GapItem['gap']): string {
  switch (gap.type) {
    case 'lost':
      return `${gap.lines} lines of the log are lost.`
    case 'damaged':
      return `An entry is damaged: ${gap.reason}`
    case 'missing':
      return 'An entry is missing from the log.'
    case 'not_loaded':
      return 'Loading older messages…'
    default:
      gap satisfies never
      return ''
  }
}
