import { text, type Content } from '@tapetree/session'
import { z } from 'zod'
import { hashOf } from '../util/request-hash.ts'
import { fileKindOf } from '../tools/files/file-kind.ts'
import { limitOutput } from '../tools/output-limit.ts'
import type { ToolContext, ToolOutput } from '../tools/tool.ts'
import type { CallResult } from './connection.ts'
import { withoutControls } from './foreign-text.ts'
import type { McpLimits } from './limits.ts'

const blockSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string() }),
  z.looseObject({ type: z.literal('audio'), data: z.string(), mimeType: z.string() }),
  z.looseObject({
    type: z.literal('resource_link'),
    uri: z.string(),
    name: z.string().optional(),
    description: z.string().optional(),
    mimeType: z.string().optional(),
  }),
  z.looseObject({
    type: z.literal('resource'),
    resource: z.looseObject({
      uri: z.string(),
      mimeType: z.string().optional(),
      text: z.string().optional(),
      blob: z.string().optional(),
    }),
  }),
])

type Block = z.output<typeof blockSchema>

/**
 * Converts a server's result for the model: all text joined, long text as a blob like that of any other tool,
 * and images after it in the order that the text mentions them.
 */
export async function toolOutput(result: CallResult, context: ToolContext, limits: McpLimits): Promise<ToolOutput> {
  const images: Content[] = []
  const parts: string[] = []
  for (const each of result.content) {
    const block = blockSchema.safeParse(each)
    if (block.success) parts.push(await partOf(block.data))
    else parts.push('(Content of an unknown kind is not shown.)')
  }
  if (result.structuredContent !== undefined && !isSaid(result.structuredContent, result.content)) {
    parts.push(JSON.stringify(result.structuredContent, undefined, 2))
  }
  const said = withoutControls(parts.filter((part) => part !== '').join('\n\n'))
  const shown = await limitOutput(said === '' ? '(The tool returned no content.)' : said, context)
  const content = images.length === 0 ? shown : [text(shown), ...images]
  return result.isError === true ? { content, isError: true } : { content }

  async function partOf(block: Block): Promise<string> {
    switch (block.type) {
      case 'text':
        return block.text
      case 'image':
        return imagePart(block.data, block.mimeType)
      case 'audio':
        return `(Audio, ${block.mimeType}, which cannot be shown.)`
      case 'resource_link':
        return linkText(block)
      case 'resource': {
        const { uri, mimeType, text: words, blob } = block.resource
        if (words !== undefined) return `${uri}:\n${words}`
        return blob === undefined ? uri : `${uri}: ${await imagePart(blob, mimeType ?? 'of no known kind')}`
      }
      default:
        return block satisfies never
    }
  }

  /** The type is detected from the bytes, whatever the server claims. */
  async function imagePart(data: string, claimed: string): Promise<string> {
    const bytes = Buffer.from(data, 'base64')
    const kind = fileKindOf(bytes)
    if (kind.type !== 'image') return `(${bytes.length} bytes of type ${claimed}, which cannot be shown.)`
    if (bytes.length > limits.maxImageBytes) return `(An image of ${bytes.length} bytes, too large to be shown.)`
    if (images.length >= limits.maxImages) return `(Another image; at most ${limits.maxImages} are shown.)`
    const blob = await context.putBlob(bytes)
    images.push({ type: 'image', image: { source: { type: 'blob', mediaType: kind.mediaType, ...blob } } })
    return `(Image ${images.length}: ${kind.mediaType}, ${blob.size} bytes)`
  }
}

function linkText({ uri, name, description, mimeType }: Block & { type: 'resource_link' }): string {
  const kind = mimeType === undefined ? '' : ` (${mimeType})`
  return [`Resource ${name ?? ''}: ${uri}${kind}`, ...(description === undefined ? [] : [description])].join('\n')
}

/** Servers should also return structured content as text. */
function isSaid(structured: unknown, content: readonly unknown[]): boolean {
  const wanted = hashOf(structured)
  return content.some((each) => {
    const block = blockSchema.safeParse(each)
    if (!block.success || block.data.type !== 'text') return false
    try {
      return hashOf(JSON.parse(block.data.text)) === wanted
    } catch {
      return false // it is plain text
    }
  })
}
