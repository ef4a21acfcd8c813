import { getImageDimensions } from '@earendil-works/pi-tui'
import type { Content, ImageSource } from '@tapetree/session'
import * as screen from '@tapetree/session/screen'
import type { ToolCallPart } from '@tapetree/session/view'

/** The most informative argument of a call; of a plan, its title. Not yet harmless. */
export function callArgument(call: Pick<ToolCallPart, 'name' | 'input'>): string {
  const { plan } = call.input
  return call.name === 'exit_plan' && typeof plan === 'string' ? planTitle(plan) : screen.callArgument(call)
}

/** The first line, without the signs of Markdown. */
function planTitle(plan: string): string {
  const [line = ''] = /\S[^\n]*/.exec(plan.slice(0, longestTitle)) ?? []
  return line
    .replace(/^(?:#{1,6}|[-*+>]|\d{1,9}[.)])[ \t]+/, '')
    .replace(/[ \t]+#*$/, '')
    .replaceAll(/\*\*|__|`/g, '')
}

const longestTitle = 2000

/** The text of a message or a result. Not yet harmless. */
export function contentText(content: string | readonly Content[]): string {
  if (typeof content === 'string') return content
  return content
    .flatMap((block) => {
      if (block.type === 'text') return [block.text.content]
      return block.type === 'image' ? [imageText(block.image.source)] : []
    })
    .join('\n')
}

/** `[image 1200×800 png]`. Not yet harmless. */
export function imageText(source: ImageSource): string {
  const kind = source.mediaType.replace(/^image\//, '').slice(0, 40)
  switch (source.type) {
    case 'base64': {
      const size = sizeOf(source)
      return size === undefined ? `[image ${kind}]` : `[image ${size} ${kind}]`
    }
    case 'blob':
      return `[image ${kind}, ${Math.max(1, Math.round(source.size / 1000)).toLocaleString('en')} kB]`
    case 'url':
      return `[image ${kind} at ${source.data.slice(0, 200)}]`
    default:
      source satisfies never
      return `[image ${kind}]`
  }
}

/** The size is at the beginning of a file; in a photograph, after the camera metadata. */
const headCharacters = 256 * 1024

function sizeOf({ data, mediaType }: { data: string; mediaType: string }): string | undefined {
  try {
    const size = getImageDimensions(data.slice(0, headCharacters), mediaType)
    return size ? `${size.widthPx}×${size.heightPx}` : undefined
  } catch {
    // Not a complete image.
    return undefined
  }
}
