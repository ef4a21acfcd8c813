import type { OpenQuestion } from '@tapetree/client'
import { harmless } from '../../text/harmless.ts'

interface PermissionText {
  /** The full effect of the call. */
  what: string
  /** Why it asks; empty if there is no reason. */
  why: string
  /** The other arguments of the call. */
  input: readonly { name: string; text: string }[]
}

/** The basis of the user's decision. Nothing is cut, and nothing in it can be hidden. */
export function permissionText({ title, tool, input = {} }: OpenQuestion): PermissionText {
  const end = endOfWhat(title, input)
  const what = title.slice(0, end)
  const why = title.slice(end + 1)
  const rest = Object.entries(input)
    .map(([name, value]) => ({ name: visible(name), text: visible(textOf(value)) }))
    .filter(({ text }) => text !== '' && !visible(what).includes(text))
  return { what: visible(what === '' ? tool : what), why: visible(why), input: rest }
}

/** After the last argument of the call, such as a command of several lines; reasons follow, one per line. */
function endOfWhat(title: string, input: Record<string, unknown>): number {
  const given = Object.values(input).filter((value) => typeof value === 'string' && value !== '') as string[]
  const ends = given
    .filter((text) => title.includes(`${text}\n`))
    .map((text) => title.indexOf(`${text}\n`) + text.length)
  if (ends.length > 0) return Math.max(...ends)
  const last = title.lastIndexOf('\n')
  return last < 0 ? title.length : last
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
}

/** Spells out invisible letters and unusual spaces. */
function visible(text: string): string {
  return harmless(text).replaceAll(
    /[\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu,
    (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`,
  )
}
