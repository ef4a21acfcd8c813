import { newId } from '@tapetree/session'
import type { HostMessage, HostRequest } from './messages.ts'
import type { HostChannel } from './remote-workspace.ts'

/** The tool host does not do it, or went away meanwhile. The message is a sentence. */
export class HostUnavailable extends Error {
  override readonly name = 'HostUnavailable'
}

export interface ConversationOptions {
  /** How long the host may take for an answer. */
  patienceMs: number
  /** Ends the wait for an answer. */
  signal?: AbortSignal
}

/** Questions to a host with the same id. Each is asked when the one before has its answer. Rejects with `HostUnavailable`. */
export function conversation(channel: HostChannel, { patienceMs, signal }: ConversationOptions) {
  const id = newId()
  return async <T extends HostMessage['type']>(
    wanted: T,
    request: (id: string) => HostRequest,
  ): Promise<Extract<HostMessage, { type: T }>> => {
    const { promise, resolve, reject } = Promise.withResolvers<HostMessage>()
    const fail = (why: string): void => reject(new HostUnavailable(why))
    const stop = channel.subscribe((event) => {
      if (event.type === 'down') fail('The tool host went away.')
      else if (event.type === 'message' && 'id' in event.message && event.message.id === id) resolve(event.message)
    })
    const timer = setTimeout(() => fail('The tool host does not answer.'), patienceMs).unref()
    const abort = (): void => reject(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    try {
      signal?.throwIfAborted()
      if (!channel.hello) throw new HostUnavailable('The tool host cannot be reached.')
      channel.send(request(id))
      const answer = await promise
      if (answer.type === 'refused') throw new HostUnavailable(answer.reason)
      if (answer.type !== wanted) throw new HostUnavailable('The tool host gave a wrong answer.')
      return answer as Extract<HostMessage, { type: T }>
    } finally {
      clearTimeout(timer)
      stop()
      signal?.removeEventListener('abort', abort)
    }
  }
}
