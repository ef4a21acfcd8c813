import type { OpenQuestion } from '@tapetree/client'
import * as screen from '@tapetree/session/screen'
import { harmless } from '../../text/harmless.ts'

export interface PermissionText extends screen.PermissionText {
  /** A command and its folder, if that is all of `what`. */
  run?: { command: string; folder: string }
}

/** The basis of the user's decision. Nothing is cut, and nothing in it can be hidden. */
export function permissionText(question: OpenQuestion): PermissionText {
  const { what, why, input } = screen.permissionText(question, seen)
  const run = runOf(what, question.input?.['command'])
  return { what, why: shortReasons(why), input, ...(run && { run }) }
}

/** Harmless, with everything spelled out that a screen does not show. */
export function seen(text: string): string {
  return screen.spellInvisible(harmless(text))
}

/** `Run in /repo: npm ci`. Only if the call has the same command. */
function runOf(what: string, given: unknown): PermissionText['run'] {
  if (typeof given !== 'string' || given === '' || !what.startsWith(runIn)) return undefined
  const command = seen(given)
  const end = what.length - command.length - 2
  if (end <= runIn.length || what.slice(end) !== `: ${command}`) return undefined
  const folder = what.slice(runIn.length, end)
  return folder.includes('\n') ? undefined : { command, folder }
}

const runIn = 'Run in '

/** Each program is named once, and equal reasons are one sentence. */
function shortReasons(why: string): string {
  const lines = why.split('\n').map((line) =>
    line
      // `git`: `git fetch` is …
      .replace(/^`([^`]+)`: (?=`\1[ `])/, '')
      // `make`: it is …
      .replace(/^`([^`]+)`: it /, '`$1` '),
  )
  const unknown = Map.groupBy(lines, (line) => unknownThing.exec(line)?.[2])
  return [...unknown]
    .flatMap(([kind, some]) => {
      const names = [...new Set(some.map((line) => unknownThing.exec(line)?.[1] ?? line))]
      const [only] = names
      if (kind === undefined) return some
      if (names.length === 1) return [`${only} is not a known read-only ${kind}.`]
      return [`${names.slice(0, -1).join(', ')} and ${names.at(-1)} are not known read-only ${kind}s.`]
    })
    .join('\n')
}

const unknownThing = /^(`[^`]+`) is not a known read-only (command|program)\.$/
