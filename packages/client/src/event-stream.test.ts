import { describe, expect, test } from 'vitest'
import { readEventStream, type StreamedEvent } from './remote-sessions.ts'

async function read(pieces: Uint8Array[]): Promise<StreamedEvent[]> {
  const found: StreamedEvent[] = []
  for await (const event of readEventStream(ReadableStream.from(pieces))) found.push(event)
  return found
}

const stream =
  ': hello\n\nid: 7-ab\nevent: line\ndata: one\ndata: two ü\n\nevent: ping\n\r\ndata:three\r\n\r\ndata: never ended\n'
const events = [
  { id: '7-ab', event: 'line', data: 'one\ntwo ü' },
  { event: 'ping', data: '' },
  { event: 'message', data: 'three' },
]

describe('an event stream', () => {
  test('yields its events, without comments and without an incomplete one', async () => {
    expect(await read([new TextEncoder().encode(stream)])).toEqual(events)
  })

  test('is the same for any chunk boundaries', async () => {
    const bytes = new TextEncoder().encode(stream)
    for (let size = 1; size < 9; size++) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.slice(index * size, (index + 1) * size),
      )
      expect(await read(pieces), `pieces of ${size}`).toEqual(events)
    }
  })

  test('with an endless event is rejected', async () => {
    const megabyte = new TextEncoder().encode(`data: ${'x'.repeat(1024 * 1024)}`)
    await expect(read(Array.from({ length: 6 }, () => megabyte))).rejects.toThrow('exceeds')
  })
})
