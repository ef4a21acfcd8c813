import { imageStoredSchema } from '@tapetree/client/protocol'
import { z } from 'zod'
import { RequestProblem } from '../../util/problem-error.ts'
import type { Routes } from '../app.ts'
import { readSession, blobParameters, sessionParameter } from './parameters.ts'
import { json } from '../responses.ts'

const bytes = z.any().meta({ type: 'string', format: 'binary' })
const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/octet-stream'] as const

export function addBlobs(routes: Routes): void {
  routes.add(
    'queue',
    {
      method: 'post',
      path: '/api/sessions/{id}/images',
      operationId: 'storeImage',
      summary: 'Store an image for a prompt',
      description: 'The body is the image. Its type is detected from its bytes, not from the content type.',
      request: {
        params: sessionParameter,
        body: { content: Object.fromEntries(imageTypes.map((type) => [type, { schema: bytes }])) },
      },
      responses: { 201: json(imageStoredSchema, 'Stored by content: the same image twice is one.') },
    },
    async (context) => {
      const image = new Uint8Array(await context.req.arrayBuffer())
      const mediaType = imageTypeOf(image)
      if (mediaType === undefined) {
        throw new RequestProblem(415, 'no-image', 'The image must be PNG, JPEG, GIF or WebP.')
      }
      await context.get('limits')?.checkStorage()
      const live = await context.get('sessions').get(context.req.valid('param').id)
      await live.becomeWritable()
      const { sha256, size } = await live.session.putBlob(image)
      return context.json({ id: sha256, size, media_type: mediaType }, 201)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/blobs/{sha256}',
      operationId: 'getBlob',
      summary: 'Get the bytes of a blob',
      request: { params: blobParameters },
      responses: {
        200: { description: 'They never change.', content: { 'application/octet-stream': { schema: bytes } } },
      },
    },
    async (context) => {
      const { id, sha256 } = context.req.valid('param')
      const blob = await readSession(context.get('sessions'), id, (session) => session.getBlob(sha256))
      const type = imageTypeOf(blob)
      // Keeps browsers from rendering it as a page.
      return context.body(new Uint8Array(blob), 200, {
        'content-type': type ?? 'application/octet-stream',
        'content-disposition': type === undefined ? 'attachment' : 'inline',
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, max-age=31536000, immutable',
        etag: `"${sha256}"`,
      })
    },
  )
}

/** The image types that models accept, by their first bytes. */
function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 12)).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8) === 'WEBP') return 'image/webp'
  return undefined
}
