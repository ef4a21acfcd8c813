import { AgentSession } from '@tapetree/agent'
import type { Session } from '@tapetree/session'
import { Requests } from '../../../packages/agent/src/permissions/requests.ts'
import { RunSlot, SharedSession } from '../../../packages/agent/src/run/run-slot.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'

/** Faults that this proof must find: each adds one and returns a function that removes it. */
export const mutants: Record<string, Mutant> = {
  'a slot for each agent session': () =>
    replaceMember(
      SharedSession,
      'of',
      (of) =>
        ({ id }: Session) =>
          of.call(SharedSession, { id, sharedKey: {} } as Session),
    ),

  'resume that takes a live run for an interrupted one': () =>
    replaceMember(AgentSession.prototype, 'resume', (resume) => {
      return function (this: AgentSession, options) {
        SharedSession.of(this.session).occupant = undefined
        return resume.call(this, options)
      }
    }),

  'a summary without the slot': () =>
    replaceMember(RunSlot.prototype, 'exclusively', () => {
      return <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => work(new AbortController().signal)
    }),

  'interrupted runs decided about without a lock': () =>
    replaceMember(
      SharedSession.prototype,
      'alone',
      () =>
        <T>(work: () => Promise<T>): Promise<T> =>
          work(),
    ),

  'requests for each agent session': () =>
    replaceMember(SharedSession.prototype, 'requestsFor', () => (session: Session) => new Requests(session)),

  'closing one owner stops the run of another': () =>
    replaceMember(RunSlot.prototype, 'leave', (leave) => {
      return async function (this: RunSlot) {
        await this.abort()
        return leave.call(this)
      }
    }),

  'a message queued during a summary is forgotten': () =>
    replaceMember(SharedSession.prototype, 'wakeLater', () => (_owner: RunSlot) => undefined),

  'a run that begins beside an append to the leaf': () =>
    replaceMember(RunSlot.prototype, 'append', () => {
      return async function (this: RunSlot, draft, cause) {
        await this.session.append(draft, cause && { cause })
      }
    }),
}
