import { callArgument, callOutcome, changedFiles, type CallOutcome } from '@tapetree/session/screen'
import type { ToolCallPart, Transcript } from '@tapetree/session/view'
import { useState, type ReactNode } from 'react'
import { contentText, outputText } from './content-text.ts'
import { Diff } from './diff.tsx'
import { Images } from './images.tsx'
import { Subagent } from './subagent.tsx'
import { isLive, useRowState } from './use-session.ts'

const signs: Record<CallOutcome['state'], string> = {
  waiting: '○',
  asking: '?',
  running: '●',
  done: '✓',
  failed: '✗',
  denied: '⊘',
  skipped: '–',
}

/** One line with the subject and state of a call, and its output or diff below. */
export function ToolCall({ call, seq }: { call: ToolCallPart; seq?: number }): ReactNode {
  const [isToggled, setToggled] = useState(false)
  const isOpenCall = call.result === undefined
  const output = useRowState(({ session }) => (isOpenCall ? outputSoFar(session.transcript, call.callId) : undefined))
  const isAsked = useRowState(
    ({ session }) => isOpenCall && session.transcript.permissions.some(({ callId }) => callId === call.callId),
  )
  const {
    state,
    note,
    output: printed,
  } = callOutcome(call, {
    isLive: useRowState((opened) => isLive(opened, call)) ?? false,
    news: { ...(output !== undefined && { output }), isAsked: isAsked ?? false },
    now: 0,
    textOf: contentText,
  })
  const isSettled = state !== 'failed' && state !== 'denied'
  const diff = changesFile(call) && isSettled ? changedFiles(call.input, printed) : undefined
  // What happens now, and what was changed, is open; results are folded.
  const isOpen =
    ((state === 'running' && call.name !== 'task') || diff !== undefined || state === 'denied') !== isToggled
  const isSubagent = call.name === 'task' && seq !== undefined
  const images = call.result && <Images content={call.result.content} />
  const hasImages = Array.isArray(call.result?.content) && call.result.content.some(({ type }) => type === 'image')
  const hasBody = diff !== undefined || printed !== '' || call.name === 'todo_write' || isSubagent
  return (
    <div className="call">
      <button
        className="fold call-head"
        aria-expanded={isOpen}
        disabled={!hasBody}
        onClick={() => setToggled(!isToggled)}
      >
        <span className={`sign ${state}`} aria-hidden="true">
          {signs[state]}
        </span>
        <b>{call.name}</b>
        <code className="argument">{callArgument(call)}</code>
        {note !== '' && <span className={`note ${state}`}>{note}</span>}
      </button>
      {isOpen &&
        (diff !== undefined ? (
          <Diff files={diff} />
        ) : call.name === 'todo_write' ? (
          <Plan items={call.input['items']} />
        ) : (
          <>
            {isSubagent && <Subagent call={call} seq={seq} />}
            {printed !== '' && (
              <pre className="output" tabIndex={0}>
                {outputText(printed)}
              </pre>
            )}
          </>
        ))}
      {hasImages && images}
    </div>
  )
}

function outputSoFar({ inFlight }: Transcript, callId: string): string | undefined {
  return inFlight.get(callId)?.parts.find(({ kind }) => kind === 'tool_output')?.text
}

function changesFile({ name }: ToolCallPart): boolean {
  return name === 'edit' || name === 'write'
}

/** The task list. It comes straight from a model and may have any form. */
function Plan({ items }: { items: unknown }): ReactNode {
  if (!Array.isArray(items)) return null
  return (
    <ul className="plan">
      {items.slice(0, 100).flatMap((item: unknown, index) => {
        if (typeof item !== 'object' || item === null || !('text' in item) || typeof item.text !== 'string') return []
        const status = 'status' in item ? item.status : undefined
        const sign = status === 'completed' ? '✓' : status === 'in_progress' ? '▸' : '○'
        return [
          <li key={index} className={status === 'completed' ? 'faint' : undefined}>
            {sign} {item.text}
          </li>,
        ]
      })}
    </ul>
  )
}
