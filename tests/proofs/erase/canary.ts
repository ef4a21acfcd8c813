import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formsOf } from '../../../packages/redact/src/redaction-policy.ts'

/** Letters only, so that the search index takes it as one word. */
export function newCanary(random: () => number): string {
  return Array.from({ length: canaryLength }, () => letters[Math.floor(random() * letters.length)]).join('')
}

const canaryLength = 24
const letters = 'abcdefghijklmnopqrstuvwxyz'
/** The index stores a word without the beginning that it shares with the word before it. */
const sharedLength = 6

/** The files below a folder that contain one of the canaries: as it is, in JSON, base64 or hexadecimal, or in UTF-16. */
export function filesWith(folder: string, canaries: readonly string[]): { path: string; canary: string }[] {
  const needles = canaries.flatMap((canary) =>
    waysToWrite(canary.slice(sharedLength)).map((bytes) => ({ canary, bytes })),
  )
  const found: { path: string; canary: string }[] = []
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const content = entry.isFile() ? readFileSync(path) : Buffer.from(entry.name)
    const hit = needles.find(({ bytes }) => content.includes(bytes))
    if (hit) found.push({ path, canary: hit.canary })
  }
  return found
}

function waysToWrite(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const utf16 = Buffer.from(text, 'utf16le')
  return [...new Set([...formsOf(text), bytes.toString('hex')])].map((form) => Buffer.from(form)).concat(utf16)
}
