import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type OAuthClientProvider,
  type RequestId,
} from '@modelcontextprotocol/client'
import { boundedFetch } from './bounded-fetch.ts'

export interface HttpTransportOptions {
  url: URL
  headers: Readonly<Record<string, string>>
  maxMessageBytes: number
  authProvider?: OAuthClientProvider
}

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1]

/** The error code of a call whose stream ends without an answer. */
export const streamEndedCode = -32_099

/**
 * Streamable HTTP transport in which no call waits for an answer that cannot arrive, and no stream stays open
 * for a cancelled call.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #streams = new Map<RequestId, AbortController>()

  constructor({ url, headers, maxMessageBytes, authProvider }: HttpTransportOptions) {
    super(url, {
      fetch: boundedFetch({ serverUrl: url, headers, maxMessageBytes }),
      ...(authProvider && { authProvider }),
    })
  }

  override async send(message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    if (Array.isArray(message)) return super.send(message, options)
    if (isJSONRPCRequest(message)) return this.#sendRequest(message.id, message, options)
    await super.send(message, options)
    const cancelled = cancelledIn(message)
    if (cancelled !== undefined) this.#streams.get(cancelled)?.abort()
  }

  async #sendRequest(id: RequestId, message: JSONRPCMessage, options: SendOptions): Promise<void> {
    const stream = new AbortController()
    this.#streams.set(id, stream)
    const ended = (): void => {
      this.#streams.delete(id)
      // Ignored by calls that already have their answer.
      const error = { code: streamEndedCode, message: 'The answer ended before it was complete.' }
      this.onmessage?.({ jsonrpc: '2.0', id, error })
    }
    await super.send(message, { ...options, requestSignal: stream.signal, onRequestStreamEnd: ended })
  }
}

function cancelledIn(message: JSONRPCMessage): RequestId | undefined {
  if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') return undefined
  return message.params?.['requestId'] as RequestId | undefined
}
