import type { ContentBlock } from '@agentclientprotocol/sdk/unstable'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface PromptContent {
  text: string
  images: { bytes: Uint8Array; mediaType: string }[]
}

/** A prompt of an editor as text and images. Links become mentions in the text; embedded files follow it as elements. */
export function readPrompt(blocks: readonly ContentBlock[], cwd: string): PromptContent {
  const text: string[] = []
  const attached: string[] = []
  const images: PromptContent['images'] = []
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        text.push(block.text)
        break
      case 'image':
        images.push({ bytes: Buffer.from(block.data, 'base64'), mediaType: block.mimeType })
        break
      case 'resource_link':
        text.push(mention(block.uri, cwd))
        break
      case 'resource': {
        const { resource } = block
        if ('text' in resource) {
          text.push(mention(resource.uri, cwd))
          attached.push(element(resource.uri, resource.text, cwd))
        } else if (resource.mimeType?.startsWith('image/')) {
          images.push({ bytes: Buffer.from(resource.blob, 'base64'), mediaType: resource.mimeType })
        } else text.push(mention(resource.uri, cwd))
        break
      }
      case 'audio':
        throw new TypeError('This agent does not accept audio.')
      default:
        block satisfies never
    }
  }
  return { text: [text.join(''), ...attached].join('\n\n'), images }
}

/** As a person would type it. Other addresses stay as they are. */
function mention(uri: string, cwd: string): string {
  const path = pathOf(uri, cwd)
  if (path === undefined) return uri
  return /\s/.test(path) ? `@"${path}"` : `@${path}`
}

/** Relative if the file is in the working folder. */
function pathOf(uri: string, cwd: string): string | undefined {
  if (!uri.startsWith('file:')) return undefined
  try {
    const { hash } = new URL(uri)
    const path = fileURLToPath(uri)
    const inside = relative(cwd, path)
    const shown = inside === '' || inside.startsWith('..') ? path : inside
    const [, from, to] = /^#L(\d+)(?::(\d+))?$/.exec(hash) ?? []
    return from === undefined ? shown : `${shown}:${from}${to === undefined ? '' : `-${to}`}`
  } catch {
    return undefined // not the address of a file on this machine
  }
}

/** Escapes closing tags, so that the text cannot end its element early. */
function element(uri: string, text: string, cwd: string): string {
  const name = (pathOf(uri, cwd) ?? uri).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  return `<file path="${name}">\n${text.replaceAll(/<(?=\/file)/gi, '&lt;').replace(/\n$/, '')}\n</file>`
}
