import type { Content, ImageSource } from '@tapetree/session'

/** The text of a message or a result, with images in words. */
export function contentText(content: string | readonly Content[]): string {
  if (typeof content === 'string') return content
  return content
    .flatMap((block) => {
      if (block.type === 'text') return [block.text.content]
      return block.type === 'image' ? [imageText(block.image.source)] : []
    })
    .join('\n')
}

/** The text of a message without its images. */
export function textIn(content: string | readonly Content[]): string {
  return typeof content === 'string' ? content : contentText(content.filter(({ type }) => type === 'text'))
}

/** `[image png]`. */
export function imageText({ mediaType }: ImageSource): string {
  return `[image ${mediaType.replace(/^image\//, '').slice(0, 40)}]`
}

/** Output of a program without the escape sequences of a terminal. Long output is shown from its end. */
export function outputText(output: string): string {
  // oxlint-disable-next-line no-control-regex
  const text = output
    .slice(-maxOutput)
    .replaceAll(/\u001b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g, '')
  return output.length > maxOutput ? `… the beginning is not shown\n${text}` : text
}

const maxOutput = 100_000
