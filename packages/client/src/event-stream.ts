/** One event of a `text/event-stream`. */
export interface StreamedEvent {
  event: string
  data: string
  id?: string
}

/** Longer events are rejected. */
const maxEventLength = 4 * 1024 * 1024

/** Yields the events of a stream as they arrive. */
export async function* readEventStream(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const decoder = new TextDecoder()
  let text = ''
  let fields: string[] = []
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      if (text.length > maxEventLength)
        throw new RangeError(`An event of the stream exceeds ${maxEventLength} characters.`)
      // A carriage return at the end may be the first half of a line ending.
      const lines = text.split(/\r\n|\n|\r(?!$)/)
      text = lines.pop() ?? ''
      for (const line of lines) {
        if (line !== '') fields.push(line)
        else if (fields.length > 0) {
          const event = readEvent(fields)
          fields = []
          if (event) yield event
        }
      }
    }
  } finally {
    // Closes the connection when the caller stops reading.
    await reader.cancel().catch(() => undefined)
  }
}

function readEvent(fields: readonly string[]): StreamedEvent | undefined {
  const data: string[] = []
  const event: StreamedEvent = { event: 'message', data: '' }
  for (const field of fields) {
    const colon = field.indexOf(':')
    const name = colon === -1 ? field : field.slice(0, colon)
    const value = colon === -1 ? '' : field.slice(colon + (field[colon + 1] === ' ' ? 2 : 1))
    if (name === 'data') data.push(value)
    else if (name === 'event') event.event = value
    else if (name === 'id') event.id = value
  }
  event.data = data.join('\n')
  return data.length > 0 || event.event !== 'message' ? event : undefined
}
