import { Listeners } from '@tapetree/session/util/listeners'
import type { HostLink } from '../hosted-call.ts'
import {
  hostMessage,
  introduced,
  parseMessage,
  type HostHello,
  type HostMessage,
  type HostRequest,
} from '../messages.ts'
import type { ChannelEvent, HostChannel } from '../remote-workspace.ts'
import type { ToolHost } from '../tool-host.ts'

/** A channel to a host in this process. It can be cut, with everything that is under way. */
export class MemoryChannel implements HostChannel {
  hello: HostHello | undefined
  /** What was sent and received, in order. */
  readonly requests: HostRequest[] = []
  readonly messages: HostMessage[] = []
  /** The host is there and takes nothing. */
  isDeaf = false
  readonly #listeners = new Listeners<ChannelEvent>()
  #link: { link: HostLink; host: ToolHost } | undefined

  /** Connects to a host, for the first time or again. */
  connect(host: ToolHost): void {
    this.cut()
    const link: HostLink = { send: (message) => queueMicrotask(() => this.#take(message, link)) }
    this.#link = { link, host }
    host.join(link)
  }

  cut(): void {
    const { link, host } = this.#link ?? {}
    if (!link) return
    this.#link = undefined
    this.hello = undefined
    host?.leave(link)
    this.#listeners.notify({ type: 'down' })
  }

  send(request: HostRequest): void {
    this.requests.push(request)
    this.sendText(JSON.stringify(request))
  }

  sendText(text: string): void {
    const { link, host } = this.#link ?? {}
    if (link && !this.isDeaf) queueMicrotask(() => host?.take(text, link))
  }

  subscribe(listener: (event: ChannelEvent) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Resolves with the next message of this type. */
  async next<T extends HostMessage['type']>(type: T): Promise<Extract<HostMessage, { type: T }>> {
    return new Promise((resolve) => {
      const stop = this.subscribe((event) => {
        if (event.type !== 'message' || event.message.type !== type) return
        stop()
        resolve(event.message as Extract<HostMessage, { type: T }>)
      })
    })
  }

  #take(text: string, link: HostLink): void {
    if (this.#link?.link !== link) return
    const message = parseMessage(hostMessage, text)
    if (!message) throw new Error(`The host sent a malformed message: ${text.slice(0, 200)}`)
    this.messages.push(message)
    if (message.type === 'hello') {
      this.hello = introduced(message)
      this.#listeners.notify({ type: 'up' })
    } else {
      this.#listeners.notify({ type: 'message', message })
    }
  }
}
