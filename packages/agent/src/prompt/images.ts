import {
  SessionError,
  text,
  type Content,
  type ImageSource,
  type Message,
  type Session,
  type WaitingMessage,
} from '@tapetree/session'
import { fileKindOf } from '../tools/files/file-kind.ts'

type BlobSource = ImageSource & { type: 'blob' }

/**
 * Replaces references to image blobs by their bytes, in messages and in tool results. If a blob is missing, the model
 * is told. A message without such an image stays the same object.
 */
export async function inlineImages(
  messages: readonly Message[],
  getBlob: (sha256: string) => Promise<Uint8Array>,
): Promise<Message[]> {
  const images = new BlobImages(getBlob)
  return Promise.all(
    messages.map(async (message) => {
      const content = await images.inline(message.content)
      return content === message.content ? message : { ...message, content }
    }),
  )
}

/** The images of one request: each blob is read once, however often it is shown. */
class BlobImages {
  readonly #getBlob: (sha256: string) => Promise<Uint8Array>
  readonly #read = new Map<string, Promise<string | undefined>>()

  constructor(getBlob: (sha256: string) => Promise<Uint8Array>) {
    this.#getBlob = getBlob
  }

  async inline(content: Content[]): Promise<Content[]> {
    const inlined = await Promise.all(content.map((block) => this.#inlineBlock(block)))
    return inlined.every((block, index) => block === content[index]) ? content : inlined
  }

  async #inlineBlock(block: Content): Promise<Content> {
    if (block.type === 'image' && block.image.source.type === 'blob') return this.#imageOf(block.image.source)
    if (block.type !== 'tool_result' || typeof block.toolResult.content === 'string') return block
    const content = await this.inline(block.toolResult.content)
    return content === block.toolResult.content ? block : { ...block, toolResult: { ...block.toolResult, content } }
  }

  async #imageOf({ mediaType, sha256, size }: BlobSource): Promise<Content> {
    let reading = this.#read.get(sha256)
    if (!reading) this.#read.set(sha256, (reading = this.#base64Of(sha256)))
    const data = await reading
    if (data === undefined) return text(`(The image is missing: ${mediaType}, ${size} bytes.)`)
    return { type: 'image', image: { source: { type: 'base64', mediaType, data } } }
  }

  async #base64Of(sha256: string): Promise<string | undefined> {
    try {
      const bytes = await this.#getBlob(sha256)
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
    } catch (error) {
      if (error instanceof SessionError && error.code === 'blob-missing') return undefined
      throw error
    }
  }
}

/** The images of a queued message. Their ids are the hashes of blobs; a missing image becomes a text. */
export async function imagesOf({ imageIds }: WaitingMessage, session: Pick<Session, 'getBlob'>): Promise<Content[]> {
  return Promise.all(imageIds.map((sha256) => imageOf(sha256, session)))
}

export async function imageOf(sha256: string, session: Pick<Session, 'getBlob'>): Promise<Content> {
  const bytes = await session.getBlob(sha256).catch(() => undefined)
  const kind = bytes && fileKindOf(bytes)
  if (!bytes || kind?.type !== 'image') return text('[An image of this message is missing.]')
  const { mediaType } = kind
  return { type: 'image', image: { source: { type: 'blob', mediaType, sha256, size: bytes.length } } }
}
