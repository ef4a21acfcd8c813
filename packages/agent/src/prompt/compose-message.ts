import type { Content, Session } from '@tapetree/session'
import type { Expansion } from './expand.ts'
import { imageOf } from './images.ts'

export interface PromptImage {
  mediaType: string
  bytes: Uint8Array
}

export interface ComposedMessage {
  text: string
  /** Each image is already a blob of the session; its id is the hash of the blob. */
  images: { id: string; block: Content }[]
}

/** The input was a command, which has run. */
export interface Handled {
  say: string | undefined
}

export interface ComposeParts {
  session: Pick<Session, 'putBlob' | 'getBlob'>
  expand: ((typed: string) => Promise<Expansion>) | undefined
}

/** The input is empty or cannot be expanded. */
export class PromptError extends Error {
  override readonly name = 'PromptError'
  readonly code: 'empty-prompt' | 'not-expanded'

  constructor(code: PromptError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Builds the message from the typed text. Rejects before anything is appended. */
export async function composeMessage(
  typed: string,
  options: { expandTemplates?: boolean; images?: readonly PromptImage[]; imageIds?: readonly string[] },
  { session, expand }: ComposeParts,
): Promise<ComposedMessage | Handled> {
  const { expandTemplates = true, images = [], imageIds = [] } = options
  if (typed.trim() === '' && images.length + imageIds.length === 0)
    throw new PromptError('empty-prompt', 'The prompt is empty.')
  const text = expandTemplates && expand ? expanded(await expand(typed)) : typed
  if (typeof text !== 'string') return text
  const kept = await Promise.all(images.map((image) => keepImage(image, session)))
  const known = await Promise.all(imageIds.map(async (id) => ({ id, block: await imageOf(id, session) })))
  return { text, images: [...kept, ...known] }
}

function expanded(expansion: Expansion): string | Handled {
  switch (expansion.type) {
    case 'as_typed':
    case 'expanded':
      return expansion.text
    case 'unknown':
      if (expansion.command.kind === 'command') return expansion.text
      throw new PromptError('not-expanded', `There is no skill ${expansion.command.name}.`)
    case 'done':
      return { say: expansion.say }
    case 'problem':
      throw new PromptError('not-expanded', expansion.problem)
    default:
      expansion satisfies never
      return ''
  }
}

async function keepImage(
  { mediaType, bytes }: PromptImage,
  session: Pick<Session, 'putBlob'>,
): Promise<{ id: string; block: Content }> {
  const { sha256, size } = await session.putBlob(bytes)
  return { id: sha256, block: { type: 'image', image: { source: { type: 'blob', mediaType, sha256, size } } } }
}
