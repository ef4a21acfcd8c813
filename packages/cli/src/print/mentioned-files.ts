import { join, resolve } from 'node:path'
import { readRegularFile } from '../util/read-regular-file.ts'

/** A file that was named behind an `@`, or why it is left as it was typed. */
export type MentionedFile =
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
export async function readMentioned(
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
