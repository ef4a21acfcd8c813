import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { ImageSource } from '@tapetree/session'

type UserContent = (LanguageModelV4Prompt[number] & { role: 'user' })['content'][number]
export type ImagePart = Extract<UserContent, { type: 'file' }>

export interface ImageRules {
  hasImages: boolean
  fetchesImages: boolean
}

/** An image as it is sent, or a note in its place. */
export function imagePart(source: ImageSource, rules: ImageRules): ImagePart | string {
  if (!rules.hasImages) return note(source, 'the model takes no images')
  switch (source.type) {
    case 'base64':
      return part(source.mediaType, { type: 'data', data: source.data })
    case 'url':
      return remoteImage(source, rules)
    case 'blob':
      return note(source, 'its bytes are not at hand')
    default:
      source satisfies never
      return ''
  }
}

export function note(source: ImageSource, why: string): string {
  return `[An image (${source.mediaType}) was left out: ${why}.]`
}

function remoteImage(source: ImageSource & { type: 'url' }, rules: ImageRules): ImagePart | string {
  const inline = /^data:([^;,]+);base64,([^]+)$/.exec(source.data)
  if (inline?.[1] && inline[2]) return part(inline[1], { type: 'data', data: inline[2] })
  const url = URL.canParse(source.data) ? new URL(source.data) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return note(source, 'it has no usable address')
  if (!rules.fetchesImages) return note(source, `it is at ${source.data}`)
  return part(source.mediaType, { type: 'url', url })
}

function part(mediaType: string, data: ImagePart['data']): ImagePart {
  return { type: 'file', mediaType, data }
}
