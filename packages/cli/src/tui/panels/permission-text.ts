import type { OpenQuestion } from '@tapetree/client'
import { harmless } from '../../text/harmless.ts'

interface PermissionText {
  /** What it would do, whole. */
  what: string
  /** Why that is asked; empty where nobody said. */
  why: string
  /** What else the call was given. */
  input: readonly { name: string; text: string }[]
}

/** What a person decides by. Nothing is cut, and nothing in it can hide. */
export function permissionText({ title, tool, input = {} }: OpenQuestion): PermissionText {
  const end = endOfWhat(title, input)
  const what = title.slice(0, end)
  const why = title.slice(end + 1)
  const rest = Object.entries(input)
    .map(([name, value]) => ({ name: visible(name), text: visible(textOf(value)) }))
    .filter(({ text }) => text !== '' && !visible(what).includes(text))
  return { what: visible(what === '' ? tool : what), why: visible(why), input: rest }
}

/** Behind the last thing that the call was given, such as a command of several lines; what follows are reasons, a line each. */
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

/** Letters that cannot be seen, and spaces that are none, are written out. */
function visible(text: string): string {
  return harmless(text).replaceAll(
    /[\p{Cf}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu,
    (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`,
  )
}
