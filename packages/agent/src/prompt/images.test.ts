import { memoryStore, SessionError, text, type Content, type ImageSource, type Message } from '@tapetree/session'
import { expect, test } from 'vitest'
import { inlineImages } from './images.ts'

const png = new Uint8Array([137, 80, 78, 71])

test('an image in a blob gets its bytes, in a message and inside a tool result', async () => {
  const session = await memoryStore().create()
  const blob = await session.putBlob(png)
  const stored = image({ type: 'blob', mediaType: 'image/png', ...blob })
  const inlined = image({ type: 'base64', mediaType: 'image/png', data: 'iVBORw==' })
  const messages: Message[] = [
    { role: 'user', content: [text('look'), stored] },
    {
      role: 'tool',
      content: [{ type: 'tool_result', toolResult: { toolUseId: 'a', content: [stored, text('seen')] } }],
    },
  ]
  expect(await inlineImages(messages, (sha256) => session.getBlob(sha256))).toEqual([
    { role: 'user', content: [text('look'), inlined] },
    {
      role: 'tool',
      content: [{ type: 'tool_result', toolResult: { toolUseId: 'a', content: [inlined, text('seen')] } }],
    },
  ])
})

test('bytes in a slice of a larger buffer are read correctly', async () => {
  const [message] = await inlineImages([{ role: 'user', content: [image(blobSource)] }], () =>
    Promise.resolve(new Uint8Array([1, 2, ...png, 3]).subarray(2, 6)),
  )
  expect(message?.content).toEqual([image({ type: 'base64', mediaType: 'image/png', data: 'iVBORw==' })])
})

test('the model is told if a blob is missing', async () => {
  const session = await memoryStore().create()
  const [message] = await inlineImages([{ role: 'user', content: [image(blobSource)] }], (sha256) =>
    session.getBlob(sha256),
  )
  expect(message?.content).toEqual([text('(The image is missing: image/png, 4 bytes.)')])
})

test('a store failure is not reported as a missing blob', async () => {
  const failing = (): Promise<never> => Promise.reject(new SessionError('storage-failed', 'no disk'))
  await expect(inlineImages([{ role: 'user', content: [image(blobSource)] }], failing)).rejects.toThrow('no disk')
})

test('a message without images in blobs stays the same object', async () => {
  const messages: Message[] = [
    {
      role: 'user',
      content: [text('hello'), image({ type: 'url', mediaType: 'image/png', data: 'https://example.com/a.png' })],
    },
    { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId: 'a', content: 'fine' } }] },
    { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId: 'b', content: [text('fine')] } }] },
    { role: 'user', content: [image(blobSource)] },
  ]
  const inlined = await inlineImages(messages, () => Promise.resolve(png))
  expect(inlined.map((message, index) => message === messages[index])).toEqual([true, true, true, false])
})

test('a blob that is shown twice is read once', async () => {
  const reads: string[] = []
  const read = (sha256: string): Promise<Uint8Array> => {
    reads.push(sha256)
    return Promise.resolve(png)
  }
  await inlineImages([{ role: 'user', content: [image(blobSource), image(blobSource)] }], read)
  expect(reads).toEqual([blobSource.sha256])
})

const blobSource = { type: 'blob' as const, mediaType: 'image/png', sha256: 'a'.repeat(64), size: 4 }

function image(source: ImageSource): Content {
  return { type: 'image', image: { source } }
}
