import type { Instructions } from '../resources/instructions.ts'
import { oneLine, taggedText } from '../util/visible-text.ts'
import type { Skill } from '../resources/skills.ts'
import { promptFile } from './prompt-file.ts'

/**
 * The parts of a system prompt. All of it is constant during a session; changing facts precede the message of the user.
 */
export interface SystemPromptParts {
  /** Replaces our base prompt. */
  base?: string
  environment: StableEnvironment
  instructions: readonly Instructions[]
  skills: readonly Skill[]
  /** From the user and from extensions. */
  appended?: readonly string[]
}

export interface StableEnvironment {
  /** As in `process.platform`. */
  platform: string
  /** The base of relative paths, absolute. */
  cwd: string
  /** The shell of the tool `bash`. */
  shell: string
}

/** All parts of a system prompt, in this order. The same parts give the same bytes. */
export function buildSystemPrompt({
  base,
  environment,
  instructions,
  skills,
  appended = [],
}: SystemPromptParts): string {
  return [
    base ?? promptFile('system-prompt'),
    environmentSection(environment),
    instructionsSection(instructions),
    skillsSection(skills),
    ...appended,
  ]
    .map((section) => section.trim())
    .filter((section) => section !== '')
    .join('\n\n')
}

function environmentSection({ platform, cwd, shell }: StableEnvironment): string {
  const facts = [
    `- Working folder: ${oneLine(cwd)}`,
    `- Platform: ${platformNames[platform] ?? oneLine(platform)}`,
    `- Shell: ${oneLine(shell)}`,
  ]
  return ['# Environment', facts.join('\n')].join('\n\n')
}

const platformNames: Readonly<Record<string, string>> = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' }

const aboutInstructions = `Instructions from the user and the people of this project to every agent, from files whose paths are given. If two of them differ, the
later one counts: it is nearer to the working folder. What the user says in the conversation comes before all of them.`

function instructionsSection(instructions: readonly Instructions[]): string {
  if (instructions.length === 0) return ''
  const files = instructions.map(({ path, text }) => taggedText('instructions', { path }, text))
  return ['# Instructions', aboutInstructions, ...files].join('\n\n')
}

const aboutSkills = `A skill is a file of instructions for one kind of work. If a task matches the description of one, read its file with \`read\` before you begin,
and follow it. Paths in it are relative to the folder that it is in. The user can also call one, and then its text is in their message.`

/** In characters. */
const maxSkillList = 32 * 1024

function skillsSection(skills: readonly Skill[]): string {
  if (skills.length === 0) return ''
  const lines: string[] = []
  let length = 0
  // Sorted by name: the folder in which a skill was found must not change the order.
  const sorted = skills.toSorted((left, right) => (left.name < right.name ? -1 : 1))
  for (const { name, description, path } of sorted) {
    const line = `- ${name}: ${oneLine(description.replace(/\s+/g, ' '))} (${oneLine(path)})`
    length += line.length + 1
    if (length > maxSkillList) break
    lines.push(line)
  }
  const missing = skills.length - lines.length
  if (missing > 0) lines.push(`- ${missing} more skills are not listed; the user can call them by name.`)
  return ['# Skills', aboutSkills, lines.join('\n')].join('\n\n')
}
