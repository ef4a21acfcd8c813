import { groupItems, type GroupedItems } from '@tapetree/session/screen'
import type { ToolCallPart } from '@tapetree/session/view'
import { useContext, useEffect, useRef, useState, type ReactNode } from 'react'
import { sessionLink } from '../route.ts'
import { rest, sentenceOf } from '../server.ts'
import { GoBackContext, OpenedContext, RowContext, useSelected, useSession, type OpenedSession } from './use-session.ts'

/** The work of a subagent, inside of the call that started it. Its session is opened when the call is. */
export function Subagent({ call, seq }: { call: ToolCallPart; seq: number }): ReactNode {
  const parent = useContext(OpenedContext)?.session.sessionId
  const [childId, setChildId] = useState<string>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let isCurrent = true
    if (parent === undefined) return undefined
    childOf(parent, { callId: call.callId, seq }).then(
      (id) => {
        if (!isCurrent) return
        if (id === undefined) setProblem('The subagent has not started.')
        else setChildId(id)
      },
      (error: unknown) => isCurrent && setProblem(sentenceOf(error)),
    )
    return () => void (isCurrent = false)
  }, [parent, call.callId, call.status, seq])
  if (childId !== undefined) return <Child sessionId={childId} />
  return <p className="faint">{problem ?? 'Loading…'}</p>
}

/** The start of the call names the session. */
async function childOf(parent: string, { callId, seq }: { callId: string; seq: number }): Promise<string | undefined> {
  const { events } = await rest.events(parent, { after: seq, limit: 200 })
  for (const event of events) {
    const start = event['tool_start'] as { call_id?: string; child_session?: string } | undefined
    if (start?.call_id === callId) return start.child_session
  }
  return undefined
}

function Child({ sessionId }: { sessionId: string }): ReactNode {
  const opened = useSession(sessionId)
  return (
    <div className="subagent">
      <a href={sessionLink(sessionId)}>Open this session</a>
      {opened ? <ChildRows opened={opened} /> : <p className="faint">Loading…</p>}
    </div>
  )
}

/** The newest rows. */
function ChildRows({ opened }: { opened: OpenedSession }): ReactNode {
  const items = useSelected(opened, ({ session }) => session.transcript.path.items)
  const Row = useContext(RowContext)
  const grouped = useRef<GroupedItems>(undefined)
  grouped.current = groupItems(items, grouped.current)
  const rows = grouped.current.rows.filter((row) => row.type !== 'item' || !hidden.has(row.item.type)).slice(-maxRows)
  return (
    <OpenedContext value={opened}>
      <GoBackContext value={undefined}>
        <div className="subagent-rows" tabIndex={0} role="log" aria-label="Work of the subagent">
          {Row && rows.map((row) => <Row key={row.key} row={row} />)}
        </div>
      </GoBackContext>
    </OpenedContext>
  )
}

const maxRows = 200
const hidden = new Set(['system', 'custom', 'gap', 'model', 'thinking_level'])
