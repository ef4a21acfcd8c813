import { fillTemplate } from '../resources/fill-template.ts'
import type { Resources } from '../resources/load-resources.ts'
import { oneLine, taggedText } from '../util/visible-text.ts'
import type { Skill } from '../resources/skills.ts'

export type Expansion =
  /** Not a command: the text is sent unchanged. */
  | { type: 'as_typed'; text: string }
  | { type: 'expanded'; text: string; used: UsedResource }
  /** It looks like a command, but no skill or template has this name. The caller decides. */
  | { type: 'unknown'; text: string; command: UnknownCommand }
  /** The command has run, and there is nothing to send. */
  | { type: 'done'; say?: string }
  | { type: 'problem'; problem: string }

export interface UsedResource {
  kind: 'skill' | 'template'
  name: string
}

export interface UnknownCommand {
  kind: 'skill' | 'command'
  name: string
  /** The text after the name. */
  typed: string
}

/**
 * Replaces `/skill:name …` by the skill and `/name …` by the template with that name. Typed arguments are not expanded
 * again.
 */
export function expandPrompt(text: string, { skills, templates }: Pick<Resources, 'skills' | 'templates'>): Expansion {
  const command = parseCommand(text)
  if (!command) return { type: 'as_typed', text }
  const { kind, name, typed } = command
  if (kind === 'skill') {
    const skill = skills.find((each) => each.name === name)
    if (!skill) return { type: 'unknown', text, command }
    return { type: 'expanded', text: expandSkill(skill, typed), used: { kind: 'skill', name } }
  }
  const template = templates.find((each) => each.name === name)
  if (!template) return { type: 'unknown', text, command }
  const filled = fillTemplate(template.body, typed)
  if (filled.type === 'filled') return { type: 'expanded', text: filled.text, used: { kind: 'template', name } }
  const problem = `The template /${name} with these arguments has more than ${filled.maxLength} characters.`
  return { type: 'problem', problem }
}

/** `/name` at the very beginning. A path such as `/usr/bin` is not a command. */
function parseCommand(text: string): UnknownCommand | undefined {
  const match = /^\/(skill:)?([A-Za-z0-9][A-Za-z0-9_:-]*)(?=\s|$)/.exec(text)
  if (!match) return undefined
  const [whole, prefix, name = ''] = match
  return { kind: prefix === undefined ? 'command' : 'skill', name, typed: text.slice(whole.length).trim() }
}

function expandSkill({ name, path, folder, body }: Skill, typed: string): string {
  const content = `References in this skill are relative to ${oneLine(folder)}.\n\n${body}`
  const skill = taggedText('skill', { name, location: path }, content)
  return typed === '' ? skill : `${skill}\n\n${typed}`
}
