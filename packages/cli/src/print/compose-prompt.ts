import { usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { join, resolve } from 'node:path'
import { readRegularFile } from '../util/read-regular-file.ts'
import type { Input, Io } from '../command-line/io.ts'

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

/** A file that was named behind an `@`, or why it is left as it was typed. */
type MentionedFile =
  | { type: 'text'; path: string; text: string }
  | { type: 'image'; path: string; mediaType: string; bytes: Uint8Array }
  | { type: 'left'; path: string; why: string }

/** More of it in a prompt would push everything else out of the context. The agent can read a file in parts. */
const maxTextBytes = 256 * 1024
const maxImageBytes = 10 * 1024 * 1024

/** Paths behind an `@` that begins a word: `@src/a.ts`, `@"a b.txt"`. A full stop or comma at the end belongs to the sentence. */
export function mentionsIn(prompt: string): string[] {
  const found = [...prompt.matchAll(/(?<![^\s(])@(?:"([^"\n]+)"|([^\s"@]+))/g)]
  return [...new Set(found.map(([, quoted, plain = '']) => quoted ?? plain.replace(/[),.:;!?]+$/, '')))].filter(
    (path) => path !== '',
  )
}

/** Undefined where there is no such file and it does not even look like a path: `@alice` is somebody. */
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
      return /[./]/.test(path) ? { type: 'left', path, why: 'There is no such file.' } : undefined
    case 'unreadable':
      return { type: 'left', path, why: 'It cannot be read.' }
    case 'no-file':
      return { type: 'left', path, why: 'It is no file.' }
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
  return `It has ${bytes} bytes, and at most ${limit} are put in. The agent can read it in parts.`
}

/** The kinds of image that models take, by how their bytes begin. */
function imageTypeOf(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, 12).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  return head.startsWith('RIFF') && head.slice(8) === 'WEBP' ? 'image/webp' : undefined
}

/** More does not fit into the context of any model. */
const maxBytes = 10 * 1024 * 1024
/** After this long without a byte it is said what is waited for. */
const patienceMs = 3000

interface StdinOptions {
  signal: AbortSignal
  onTooLong: () => never
  onWaiting: () => void
}

/** All that is piped in; nothing where a person sits before it. */
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
