import { AgentSession } from '@tapetree/agent'
import type { Session } from '@tapetree/session'
import { Requests } from '../../../packages/agent/src/permissions/requests.ts'
import { RunSlot, SharedSession } from '../../../packages/agent/src/run/run-slot.ts'

/** Faults that this proof must find: each puts one in and gives back what takes it out again. */
export const mutants: Record<string, () => () => void> = {
  'a slot for each agent session': () =>
    replace(
      SharedSession,
      'of',
      (of) =>
        ({ id }: Session) =>
          of.call(SharedSession, { id, sharedKey: {} } as Session),
    ),

  'resume that takes a live run for an interrupted one': () =>
    replace(AgentSession.prototype, 'resume', (resume) => {
      return function (this: AgentSession, options) {
        SharedSession.of(this.session).occupant = undefined
        return resume.call(this, options)
      }
    }),

  'a summary without the slot': () =>
    replace(RunSlot.prototype, 'exclusively', () => {
      return <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => work(new AbortController().signal)
    }),

  'interrupted runs decided about without a lock': () =>
    replace(
      SharedSession.prototype,
      'alone',
      () =>
        <T>(work: () => Promise<T>): Promise<T> =>
          work(),
    ),

  'requests for each agent session': () =>
    replace(SharedSession.prototype, 'requestsFor', () => (session: Session) => new Requests(session)),

  'closing one owner stops the run of another': () =>
    replace(RunSlot.prototype, 'leave', (leave) => {
      return async function (this: RunSlot) {
        await this.abort()
        return leave.call(this)
      }
    }),

  'a message queued during a summary is forgotten': () =>
    replace(SharedSession.prototype, 'wakeLater', () => (_owner: RunSlot) => undefined),

  'a run that begins beside an append to the leaf': () =>
    replace(RunSlot.prototype, 'append', () => {
      return async function (this: RunSlot, draft, cause) {
        await this.session.append(draft, cause && { cause })
      }
    }),
}

function replace<T extends object, Key extends keyof T>(
  target: T,
  key: Key,
  make: (original: T[Key]) => T[Key],
): () => void {
  const original = target[key]
  target[key] = make(original)
  return () => void (target[key] = original)
}
