import type { LanguageModelV4ToolResultOutput } from '@ai-sdk/provider'
import type { ToolResult } from '@tapetree/session'
import { imagePart, note, type ImagePart, type ImageRules } from './image-part.ts'
import type { ProviderFacts } from '../provider-facts.ts'

export interface ResultRules extends ImageRules {
  facts: ProviderFacts
}

/** What a tool gave, in the form that the provider understands. */
export function toolResultOutput(result: ToolResult, rules: ResultRules): LanguageModelV4ToolResultOutput {
  const pieces = piecesOf(result, rules)
  const words = pieces.filter((piece) => typeof piece === 'string').join('\n') || noWords(pieces)
  const isFailure = result.isError === true && rules.facts.marksFailedResults
  if (pieces.every((piece) => typeof piece === 'string'))
    return { type: isFailure ? 'error-text' : 'text', value: words }
  const ordered = rules.facts.resultImages === 'after-text' ? [words, ...pieces.filter(isImage)] : pieces
  return { type: 'content', value: ordered.map(asContent) }
}

function piecesOf({ content }: ToolResult, rules: ResultRules): (string | ImagePart)[] {
  const blocks = typeof content === 'string' ? [content] : content
  return blocks
    .flatMap((block) => {
      if (typeof block === 'string') return [block]
      if (block.type === 'text') return [block.text.content]
      if (block.type !== 'image') return []
      const { source } = block.image
      if (rules.facts.resultImages === 'never') return [note(source, 'a tool cannot show images to this model')]
      return [imagePart(source, rules)]
    })
    .filter((piece) => piece !== '')
}

/** Some providers refuse an empty result, and some one without words. */
function noWords(pieces: readonly unknown[]): string {
  return pieces.length === 0 ? '(no output)' : '(an image)'
}

function isImage(piece: string | ImagePart): piece is ImagePart {
  return typeof piece !== 'string'
}

type ContentPart = (LanguageModelV4ToolResultOutput & { type: 'content' })['value'][number]

function asContent(piece: string | ImagePart): ContentPart {
  return typeof piece === 'string' ? { type: 'text', text: piece } : piece
}
