import { text, type Content, type Session, type WaitingMessage } from '@tapetree/session'
import { fileKindOf } from '../tools/files/file-kind.ts'

/** The images of a message that waited. Their ids are the hashes of blobs; what is missing is said in words. */
export async function imagesOf({ imageIds }: WaitingMessage, session: Pick<Session, 'getBlob'>): Promise<Content[]> {
  return Promise.all(imageIds.map((sha256) => imageOf(sha256, session)))
}

export async function imageOf(sha256: string, session: Pick<Session, 'getBlob'>): Promise<Content> {
  const bytes = await session.getBlob(sha256).catch(() => undefined)
  const kind = bytes && fileKindOf(bytes)
  if (!bytes || kind?.type !== 'image') return text('[An image that came with this message is missing.]')
  const { mediaType } = kind
  return { type: 'image', image: { source: { type: 'blob', mediaType, sha256, size: bytes.length } } }
}
