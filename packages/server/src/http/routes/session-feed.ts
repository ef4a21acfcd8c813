import { systemClock } from '@tapetree/agent/run'
import { SessionError } from '@tapetree/session'
import type { WireSessionFeedEvent } from '@tapetree/client/protocol'
import { z } from 'zod'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import type { ApiParts, Routes } from '../app.ts'
import { readSession } from './parameters.ts'
import { infoOf, summaryOf } from '../bodies/session-body.ts'
import type { WorkspaceSource } from '../../tool-hosts/tool-hosts.ts'
import { EventStream, eventStreamHeaders } from '../sse.ts'
import { endOf } from './events.ts'

/** A session that changes with every line is reported at most this often. */
const quietMs = 100

export function addSessionFeed(routes: Routes, { clock = systemClock, closing, onGap, toolHosts }: ApiParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/events',
      operationId: 'followSessions',
      summary: 'Follow changes in the list of sessions as server-sent events',
      responses: {
        200: {
          description: '`ready`, then `session_changed` and `session_removed`; a `ping` every 15 seconds.',
          content: { 'text/event-stream': { schema: z.string() } },
        },
      },
    },
    (context) => {
      const sessions = context.get('sessions')
      const hosts = toolHosts?.of(context.get('caller').tenant)
      const changed = new Set<string>()
      let wake = Promise.withResolvers<void>()
      const stop = sessions.onChange((sessionId) => {
        changed.add(sessionId)
        wake.resolve()
      })
      // Changes on other servers may have been missed. The reader reads the list again when it comes back.
      const stopGaps = onGap?.(() => stream.close())
      const stream = new EventStream({
        clock,
        signal: endOf(context, closing),
        onDrain: () => wake.resolve(),
        onClose: () => {
          stop()
          stopGaps?.()
          wake.resolve()
        },
      })
      stream.send({ event: 'ready', data: '{"type":"ready"}' })
      void tellAlong()
      return context.body(stream.readable, 200, eventStreamHeaders)

      /** Only the latest state of a session counts: changes while a reader is slow are merged. */
      async function tellAlong(): Promise<void> {
        while (!stream.isClosed) {
          await wake.promise
          wake = Promise.withResolvers()
          for (const sessionId of changed) {
            if (stream.isFull) break
            changed.delete(sessionId)
            const event = await stateOf(sessions, sessionId, hosts)
            if (event) stream.send({ event: event.type, data: JSON.stringify(event) })
          }
          await clock.wait(quietMs)
        }
      }
    },
  )
}

async function stateOf(
  sessions: ReachableSessions,
  sessionId: string,
  hosts: WorkspaceSource | undefined,
): Promise<WireSessionFeedEvent | undefined> {
  try {
    const session = await readSession(sessions, sessionId, async (open, live) =>
      summaryOf(await infoOf(open, live), { live, session: open, hosts }),
    )
    return { type: 'session_changed', session }
  } catch (error) {
    const isGone = error instanceof SessionError && error.code === 'session-not-found'
    // A session that cannot be read now is reported with its next change.
    return isGone ? { type: 'session_removed', session_id: sessionId } : undefined
  }
}
