import { usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { mentionsIn, readMentioned, type MentionedFile } from './mentioned-files.ts'

export interface ComposedPrompt {
  text: string
  images: { mediaType: string; bytes: Uint8Array }[]
  /** What was left as it was typed, a sentence each. */
  notices: string[]
}

interface PromptParts {
  /** The words of the command line. Only here does `@` mean a file: what is piped in was written by somebody else. */
  typed: string
  /** What came on stdin. */
  piped: string
  cwd: string
  home: string
  signal?: AbortSignal
}

/** One prompt from what was typed, the files it names and what was piped in. */
export async function composePrompt({ typed, piped, ...place }: PromptParts): Promise<ComposedPrompt> {
  if (typed.trim() === '' && piped.trim() === '') {
    throw usageFailure('There is no prompt. Give one behind run, or pipe one in.', [
      'tapetree run "What is in this folder?"',
      'tapetree run --help',
    ])
  }
  const files = await Promise.all(mentionsIn(typed).map((path) => readMentioned(path, place)))
  const found = files.filter((file) => file !== undefined)
  const blocks = found.flatMap((file) => (file.type === 'text' ? [fileBlock(file)] : []))
  return {
    text: typed.trim() === '' ? piped : [typed, ...blocks, ...pipedBlock(piped)].join('\n\n'),
    images: found.flatMap((file) => (file.type === 'image' ? [{ mediaType: file.mediaType, bytes: file.bytes }] : [])),
    notices: found.flatMap((file) =>
      file.type === 'left' ? [`@${harmlessLine(file.path)} stays as it was typed. ${file.why}`] : [],
    ),
  }
}

function fileBlock({ path, text }: Extract<MentionedFile, { type: 'text' }>): string {
  return tagged('file', ` path="${attribute(path)}"`, text)
}

function pipedBlock(piped: string): string[] {
  return piped.trim() === '' ? [] : [tagged('stdin', '', piped)]
}

/** The text stays as it is, but for an end tag of this name: it cannot reach beyond its own end. */
function tagged(tag: string, attributes: string, text: string): string {
  const inside = text.replaceAll(new RegExp(`<(?=/${tag})`, 'gi'), '&lt;')
  return `<${tag}${attributes}>\n${inside.replace(/\n$/, '')}\n</${tag}>`
}

function attribute(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  return escaped.replaceAll(/\s+/g, ' ')
}
