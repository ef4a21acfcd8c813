import { usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { join, resolve } from 'node:path'
import { readRegularFile } from '../util/read-regular-file.ts'
import type { Input, Io } from '../command-line/io.ts'

export interface ComposedPrompt {
  text: string
  images: { mediaType: string; bytes: Uint8Array }[]
  /** References left as typed, a sentence each. */
  notices: string[]
}

interface PromptParts {
  /** The prompt from the command line. Only here does `@` mean a file: piped text may come from someone else. */
  typed: string
  /** The text from stdin. */
  piped: string
  cwd: string
  home: string
  signal?: AbortSignal
}

/** Combines the typed prompt, the files it names and the piped text into one prompt. */
export async function composePrompt({ typed, piped, ...place }: PromptParts): Promise<ComposedPrompt> {
  if (typed.trim() === '' && piped.trim() === '') {
    throw usageFailure('There is no prompt. Pass one to run, or pipe one in.', [
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
      file.type === 'left' ? [`@${harmlessLine(file.path)} is left as typed. ${file.why}`] : [],
    ),
  }
}

function fileBlock({ path, text }: Extract<MentionedFile, { type: 'text' }>): string {
  return tagged('file', ` path="${attribute(path)}"`, text)
}

function pipedBlock(piped: string): string[] {
  return piped.trim() === '' ? [] : [tagged('stdin', '', piped)]
}

/** Escapes closing tags of this name, so that the text cannot end its element early. */
function tagged(tag: string, attributes: string, text: string): string {
  const inside = text.replaceAll(new RegExp(`<(?=/${tag})`, 'gi'), '&lt;')
  return `<${tag}${attributes}>\n${inside.replace(/\n$/, '')}\n</${tag}>`
}

function attribute(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  return escaped.replaceAll(/\s+/g, ' ')
}

/** A file named after an `@`, or why the reference is left as typed. */
type MentionedFile =
  | { type: 'text'; path: string; text: string }
  | { type: 'image'; path: string; mediaType: string; bytes: Uint8Array }
  | { type: 'left'; path: string; why: string }

/** A larger file would crowd out the rest of the context. The agent can read a file in parts. */
const maxTextBytes = 256 * 1024
const maxImageBytes = 10 * 1024 * 1024

/** Paths after an `@` that begins a word: `@src/a.ts`, `@"a b.txt"`. A final full stop or comma belongs to the sentence. */
export function mentionsIn(prompt: string): string[] {
  const found = [...prompt.matchAll(/(?<![^\s(])@(?:"([^"\n]+)"|([^\s"@]+))/g)]
  return [...new Set(found.map(([, quoted, plain = '']) => quoted ?? plain.replace(/[),.:;!?]+$/, '')))].filter(
    (path) => path !== '',
  )
}

/** Undefined if the file does not exist and does not look like a path, such as `@alice`. */
async function readMentioned(
  path: string,
  { cwd, home, signal }: { cwd: string; home: string; signal?: AbortSignal },
): Promise<MentionedFile | undefined> {
  const whole = path.startsWith('~/') ? join(home, path.slice(2)) : resolve(cwd, path)
  const file = await readRegularFile(whole, { maxBytes: maxImageBytes, ...(signal && { signal }) })
  switch (file.type) {
    case 'read':
      return kindOf(path, file.bytes)
    case 'not-found':
      return /[./]/.test(path) ? { type: 'left', path, why: 'The file does not exist.' } : undefined
    case 'unreadable':
      return { type: 'left', path, why: 'It cannot be read.' }
    case 'no-file':
      return { type: 'left', path, why: 'It is not a regular file.' }
    case 'too-large':
      return { type: 'left', path, why: tooLarge(file.size, maxImageBytes) }
    default:
      return file satisfies never
  }
}

function kindOf(path: string, bytes: Buffer): MentionedFile {
  const mediaType = imageTypeOf(bytes)
  if (mediaType !== undefined) return { type: 'image', path, mediaType, bytes }
  if (bytes.length > maxTextBytes) return { type: 'left', path, why: tooLarge(bytes.length, maxTextBytes) }
  if (bytes.includes(0)) return { type: 'left', path, why: 'It is neither text nor an image.' }
  return { type: 'text', path, text: bytes.toString('utf8') }
}

function tooLarge(bytes: number, limit: number): string {
  return `It has ${bytes} bytes; the limit is ${limit}. The agent can read it in parts.`
}

/** Image types that models accept, by their first bytes. */
function imageTypeOf(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, 12).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  return head.startsWith('RIFF') && head.slice(8) === 'WEBP' ? 'image/webp' : undefined
}

/** More does not fit in the context of any model. */
const maxBytes = 10 * 1024 * 1024
/** After this long without a byte, a notice says what the command waits for. */
const patienceMs = 3000

interface StdinOptions {
  signal: AbortSignal
  onTooLong: () => never
  onWaiting: () => void
}

/** All piped input; empty on a terminal. */
export async function readStdin(stdin: Io['stdin'], { signal, onTooLong, onWaiting }: StdinOptions): Promise<string> {
  if (stdin.isTTY) return ''
  const chunks: Buffer[] = []
  let bytes = 0
  const timer = setTimeout(onWaiting, patienceMs)
  const stop = (): void => void stdin.destroy(new DOMException('Interrupted.', 'AbortError'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    for await (const chunk of stdin as Input & AsyncIterable<Buffer | string>) {
      clearTimeout(timer)
      const read = Buffer.from(chunk as Buffer)
      bytes += read.length
      if (bytes > maxBytes) onTooLong()
      chunks.push(read)
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
  return Buffer.concat(chunks).toString('utf8')
}
