export interface LimitedJsonOptions {
  fetch: typeof globalThis.fetch
  signal: AbortSignal
  maxBytes: number
  headers?: Record<string, string>
  /** Sent as JSON, by POST. */
  body?: unknown
}

/** The JSON response of a server. Throws if it is invalid, too long, an error or a redirect. */
export async function limitedJson(url: string, options: LimitedJsonOptions): Promise<unknown> {
  const { fetch, signal, maxBytes, headers, body } = options
  const response = await fetch(url, {
    redirect: 'error',
    signal,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  if (!response.ok) {
    await response.body?.cancel()
    throw new Error(`${url} answered with status ${response.status}.`)
  }
  return JSON.parse(await limitedText(response, maxBytes))
}

export async function limitedText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength
    // Leaving the loop closes the connection.
    if (length > maxBytes) throw new Error(`${response.url} answered with more than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
