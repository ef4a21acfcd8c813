import { refusePrivateLiteral, requestPublic, systemNetwork, type Network } from '@tapetree/agent/tools'
import { isInside } from '@tapetree/agent/util/is-inside'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { isQuestion } from '@tapetree/client'
import type { PushMessage } from '@tapetree/client/protocol'
import type { Line } from '@tapetree/session/format'
import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import type { TokenStore } from '../auth/token-store.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { RequestProblem } from '../util/problem-error.ts'
import { PushStore, type PushSubscription } from './push-store.ts'
import { encryptMessage, vapidAuthorization, type SubscriptionKeys } from './web-push.ts'

export interface PushOptions {
  /** Keys and subscriptions, readable only by the owner. */
  file: string
  /** Whom a push service may contact about this server: `mailto:` or `https:`. */
  subject?: string
  /** How push services are reached. Default: only public addresses. */
  network?: Network
}

interface PushServiceOptions extends PushOptions {
  tenants: ReadonlyMap<string, LiveSessions>
  /** Absent: the host application identifies callers, and a subscription lasts until it is removed. */
  tokens: TokenStore | undefined
  clock?: Clock
  /** Reports messages that could not be sent. */
  onProblem?: (problem: { subscriptionId: string; message: string }) => void
}

const defaultSubject = 'https://github.com/tapetree/tapetree'
const requestMs = 10_000
const retryMs = 1000
/** Messages on their way. Further ones are dropped: the list of sessions has the same facts. */
const maxUnderWay = 200
const secondsToLive = 24 * 60 * 60

/** Sends a Web Push message to subscribed browsers when a session needs its user. */
export class PushService {
  readonly #store: PushStore
  readonly #options: PushServiceOptions & { subject: string; network: Network; clock: Clock }
  readonly #stops: (() => void)[] = []
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: PushServiceOptions) {
    this.#options = { subject: defaultSubject, network: systemNetwork, clock: systemClock, ...options }
    this.#store = new PushStore(options.file)
    for (const [tenant, sessions] of options.tenants) {
      this.#stops.push(sessions.onLine(({ live, line }) => this.#take(tenant, live, line)))
    }
    const stop = options.tokens?.onRevoked((tokenId) => this.#start('', this.#forget(tokenId)))
    if (stop) this.#stops.push(stop)
  }

  async publicKey(): Promise<string> {
    return (await this.#store.keys()).publicKey
  }

  /** Rejects with 422 if the endpoint is not a public https address or the keys are not valid. */
  async subscribe(
    caller: { tenant: string; tokenId: string },
    { endpoint, keys }: { endpoint: string; keys: SubscriptionKeys },
  ): Promise<PushSubscription> {
    checkEndpoint(endpoint, this.#options.network)
    try {
      encryptMessage(Buffer.from('x'), keys)
    } catch {
      throw new RequestProblem(422, 'invalid-subscription', 'The keys of the subscription are not valid.')
    }
    const { tenant, tokenId } = caller
    return this.#store.add({ tenant, tokenId, endpoint, keys, createdAt: this.#options.clock.now() })
  }

  async list({ tenant, tokenId }: { tenant: string; tokenId: string }): Promise<PushSubscription[]> {
    return (await this.#store.list()).filter((each) => each.tenant === tenant && each.tokenId === tokenId)
  }

  /** Returns false if the caller has no such subscription. */
  async unsubscribe({ tenant, tokenId }: { tenant: string; tokenId: string }, id: string): Promise<boolean> {
    const isIt = (each: PushSubscription): boolean =>
      each.id === id && each.tenant === tenant && each.tokenId === tokenId
    return (await this.#store.remove(isIt)) > 0
  }

  /** Resolves when no message is on its way. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop()
    this.#closing.abort()
    await this.settled()
  }

  #take(tenant: string, live: LiveSession, line: Line): void {
    const message = messageOf(live, line)
    if (message) this.#start('', this.#sendToAll(tenant, message, live.session.header?.cwd))
  }

  #start(subscriptionId: string, work: Promise<unknown>): void {
    const task = work
      .catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error)
        if (!this.#closing.signal.aborted) this.#options.onProblem?.({ subscriptionId, message })
      })
      .then(() => void this.#underWay.delete(task))
    this.#underWay.add(task)
  }

  async #sendToAll(tenant: string, message: PushMessage, cwd: string | undefined): Promise<void> {
    const subscriptions = (await this.#store.list()).filter((each) => each.tenant === tenant)
    for (const subscription of subscriptions) {
      if (!(await this.#maySee(subscription, cwd))) continue
      if (this.#underWay.size >= maxUnderWay)
        throw new Error('Too many messages are on their way. This one is dropped.')
      this.#start(subscription.id, this.#send(subscription, message))
    }
  }

  /** The token must still be valid, and may be limited to a folder. */
  async #maySee({ tenant, tokenId }: PushSubscription, cwd: string | undefined): Promise<boolean> {
    const { tokens, clock } = this.#options
    if (!tokens) return true
    const record = tokens.list(tenant).find(({ id }) => id === tokenId)
    if (!record || (record.expiresAt !== undefined && record.expiresAt <= clock.now())) return false
    if (record.folder === undefined) return true
    return cwd !== undefined && isInside(await realpath(cwd).catch(() => '/'), record.folder)
  }

  async #send(subscription: PushSubscription, message: PushMessage): Promise<void> {
    const { clock } = this.#options
    const status = await this.#post(subscription, message).catch(async () => {
      await clock.wait(retryMs, this.#closing.signal)
      return this.#post(subscription, message)
    })
    // The browser has unsubscribed, or was reset.
    if (status === 404 || status === 410) await this.#store.remove(({ id }) => id === subscription.id)
    else if (status >= 300) throw new Error(`${new URL(subscription.endpoint).host} answered ${status}.`)
  }

  async #post({ endpoint, keys }: PushSubscription, message: PushMessage): Promise<number> {
    const { network, subject, clock } = this.#options
    const vapid = await this.#store.keys()
    const over = new AbortController()
    const late = clock.wait(requestMs, over.signal).then(
      () => over.abort(),
      () => undefined,
    )
    try {
      const { status } = await requestPublic(endpoint, {
        network,
        signal: AbortSignal.any([over.signal, this.#closing.signal]),
        method: 'POST',
        body: encryptMessage(Buffer.from(JSON.stringify(message)), keys),
        headers: {
          authorization: vapidAuthorization(endpoint, { keys: vapid, subject, now: clock.now() }),
          'content-type': 'application/octet-stream',
          'content-encoding': 'aes128gcm',
          ttl: String(secondsToLive),
          urgency: message.needs === 'permission' || message.needs === 'question' ? 'high' : 'normal',
          // A later message about the same session replaces one that is not delivered yet.
          topic: createHash('sha256').update(message.session_id).digest('base64url').slice(0, 32),
        },
      })
      if (status >= 500 || status === 429) throw new Error(`${new URL(endpoint).host} answered ${status}.`)
      return status
    } finally {
      over.abort()
      await late
    }
  }

  async #forget(tokenId: string): Promise<void> {
    await this.#store.remove((each) => each.tokenId === tokenId)
  }
}

/** What a line means for a person who is away: never the content of a message. */
function messageOf({ session }: LiveSession, line: Line): PushMessage | undefined {
  const about = { session_id: session.id, ...(session.name !== '' && { name: session.name.slice(0, 200) }) }
  if (line.type === 'permission_request') {
    const { requestId } = line.permissionRequest
    return { ...about, needs: isQuestion(line.permissionRequest) ? 'question' : 'permission', request_id: requestId }
  }
  if (line.type !== 'run_end' || session.info.subagent) return undefined
  const { outcome } = line.runEnd
  if (outcome === 'completed') return { ...about, needs: 'finished' }
  return outcome === 'failed' ? { ...about, needs: 'failed' } : undefined
}

/** Names are resolved and checked when a message is sent. */
function checkEndpoint(endpoint: string, network: Network): void {
  const url = URL.parse(endpoint)
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '' && url.port === ''
  try {
    if (isPlain) return refusePrivateLiteral(url, network)
  } catch {
    // It is an address of this machine or its network.
  }
  throw new RequestProblem(422, 'invalid-subscription', 'The endpoint must be a public https address.')
}
