import { join } from 'node:path'
import { parseFrontMatter } from './front-matter.ts'
import { listFolder, readLimited, listTrusted, readTrusted, type TrustedContent } from './resource-files.ts'
import { oneLine } from '../util/visible-text.ts'

/**
 * Instructions for one kind of work, in the format of Agent Skills: a folder with a SKILL.md and the files that it
 * refers to.
 */
export interface Skill {
  name: string
  description: string
  /** The SKILL.md, absolute. */
  path: string
  /** The base of relative references in it. */
  folder: string
  source: 'user' | 'project' | 'config' | 'extension'
  license?: string
  compatibility?: string
  /** The tools that the skill expects to use. It grants nothing. */
  allowedTools?: readonly string[]
  metadata: ReadonlyMap<string, string>
  /** The text after the front matter. */
  body: string
}

/** A folder that contains skill folders. */
export interface SkillPlace {
  folder: string
  source: Skill['source']
  /** A folder that symbolic links must not leave, without links itself. */
  within?: string
  /** Replaces the content on disk. */
  content?: TrustedContent
}

const maxBytes = 128 * 1024
const maxSkills = 256

/** The skills of all folders. If two have the same name, the first one wins and the other is reported. */
export async function loadSkills(places: readonly SkillPlace[]): Promise<{ skills: Skill[]; problems: string[] }> {
  const skills = new Map<string, Skill>()
  const seen = new Set<string>()
  const problems: string[] = []
  for (const { folder, source, within, content } of places) {
    const listing = content ? listTrusted(content, folder) : await listFolder(folder, within)
    problems.push(...listing.problems)
    for (const name of listing.names) {
      const path = join(folder, name, 'SKILL.md')
      const read = content
        ? readTrusted(content, path, maxBytes)
        : await readLimited(path, { maxBytes, whenLonger: 'refuse', ...(within !== undefined && { within }) })
      if (read.type === 'refused') problems.push(read.problem)
      // A file that is found by two paths is not a collision.
      if (read.type !== 'text' || seen.has(read.realPath)) continue
      seen.add(read.realPath)
      const parsed = parseSkill(read.text, name)
      const why = parsed.type === 'invalid' ? parsed.problem : refusal(parsed.skill.name, skills)
      if (why !== undefined) problems.push(`${oneLine(path)} was left out: ${why}.`)
      else if (parsed.type === 'skill') {
        skills.set(parsed.skill.name, { ...parsed.skill, path, folder: join(folder, name), source })
      }
    }
  }
  return { skills: [...skills.values()], problems }
}

function refusal(name: string, skills: ReadonlyMap<string, Skill>): string | undefined {
  const other = skills.get(name)
  if (other) return `the skill "${name}" already exists, ${oneLine(other.path)}`
  return skills.size === maxSkills ? `the limit of ${maxSkills} skills is reached` : undefined
}

export type ParsedSkill =
  | { type: 'skill'; skill: Omit<Skill, 'path' | 'folder' | 'source'> }
  | { type: 'invalid'; problem: string }

/** Parses a SKILL.md by the rules of the standard. */
export function parseSkill(text: string, folderName: string): ParsedSkill {
  const parsed = parseFrontMatter(text)
  if (parsed.type === 'invalid') return invalid(`${parsed.problem} (line ${parsed.line})`)
  const { fields, body, hasFields } = parsed
  if (!hasFields) return invalid('it does not begin with front matter between two lines ---')
  const problem =
    nameProblem(fields.get('name'), folderName) ??
    textProblem(fields, 'description', { maxLength: 1024, isRequired: true }) ??
    textProblem(fields, 'license', { maxLength: 1024 }) ??
    textProblem(fields, 'compatibility', { maxLength: 500 })
  if (problem !== undefined) return invalid(problem)
  const allowedTools = toolNames(fields.get('allowed-tools'))
  if (allowedTools === undefined) return invalid('its `allowed-tools` is neither a text nor a list of texts')
  const metadata = textMap(fields.get('metadata'))
  if (metadata === undefined) return invalid('its `metadata` is not a list of `name: text`')
  const license = textOf(fields.get('license'))
  const compatibility = textOf(fields.get('compatibility'))
  return {
    type: 'skill',
    skill: {
      name: folderName,
      description: textOf(fields.get('description')) ?? '',
      ...(license !== undefined && { license }),
      ...(compatibility !== undefined && { compatibility }),
      ...(allowedTools.length > 0 && { allowedTools }),
      metadata,
      body: body.trim(),
    },
  }
}

function invalid(problem: string): ParsedSkill {
  return { type: 'invalid', problem }
}

function nameProblem(name: unknown, folderName: string): string | undefined {
  if (typeof name !== 'string' || name === '') return 'its front matter has no `name`'
  if (name.length > 64) return 'its name has more than 64 characters'
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
    return `its name "${oneLine(name)}" may only have lower-case letters, digits and single hyphens between them`
  }
  if (name !== folderName) return `its name "${name}" differs from that of its folder, "${oneLine(folderName)}"`
  return undefined
}

function textProblem(
  fields: ReadonlyMap<string, unknown>,
  name: string,
  { maxLength, isRequired = false }: { maxLength: number; isRequired?: boolean },
): string | undefined {
  const value = fields.get(name)
  if (value === undefined || textOf(value) === undefined) {
    if (value !== undefined && typeof value !== 'string') return `its \`${name}\` is not a text`
    return isRequired ? `its front matter has no \`${name}\`` : undefined
  }
  return [...(value as string)].length > maxLength ? `its \`${name}\` has more than ${maxLength} characters` : undefined
}

/** Undefined if it is empty. */
function textOf(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value.trim() : ''
  return text === '' ? undefined : text
}

/** `Bash(git add *) Read`: separated by blanks or commas, but not within parentheses. */
function toolNames(value: unknown): string[] | undefined {
  if (value === undefined) return []
  if (typeof value === 'string') return value.match(/[^\s,(]+(?:\([^()]*\))?/g) ?? []
  return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined
}

function textMap(value: unknown): Map<string, string> | undefined {
  if (value === undefined || value === '') return new Map()
  if (!(value instanceof Map)) return undefined
  const entries = [...(value as Map<string, unknown>)]
  return entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')
    ? new Map(entries)
    : undefined
}
