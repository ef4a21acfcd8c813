import { join } from 'node:path'
import { parseFrontMatter } from './front-matter.ts'
import { listFolder, readLimited, listTrusted, readTrusted, type TrustedContent } from './resource-files.ts'
import { oneLine } from '../util/visible-text.ts'

/** A prompt in a file, called as `/name arguments`. */
export interface Template {
  name: string
  description: string
  /** Shown to users of the command: `<file> [reason]`. */
  argumentHint?: string
  /** Absolute. */
  path: string
  source: 'config' | 'project' | 'extension'
  body: string
}

/** A folder whose Markdown files are templates. */
export interface TemplatePlace {
  folder: string
  source: Template['source']
  /** A folder that symbolic links must not leave, without links itself. */
  within?: string
  /** Replaces the content on disk. */
  content?: TrustedContent
}

const maxBytes = 64 * 1024
const maxTemplates = 256

/** The templates of all folders. If two have the same name, the first one wins and the other is reported. */
export async function loadTemplates(
  places: readonly TemplatePlace[],
): Promise<{ templates: Template[]; problems: string[] }> {
  const templates = new Map<string, Template>()
  const seen = new Set<string>()
  const problems: string[] = []
  for (const { folder, source, within, content } of places) {
    const listing = content ? listTrusted(content, folder) : await listFolder(folder, within)
    problems.push(...listing.problems)
    for (const file of listing.names.filter((name) => name.endsWith('.md'))) {
      const path = join(folder, file)
      const read = content
        ? readTrusted(content, path, maxBytes)
        : await readLimited(path, { maxBytes, whenLonger: 'refuse', ...(within !== undefined && { within }) })
      if (read.type === 'refused') problems.push(read.problem)
      // A file that is found by two paths is not a collision.
      if (read.type !== 'text' || seen.has(read.realPath)) continue
      seen.add(read.realPath)
      const parsed = parseTemplate(read.text, file.slice(0, -'.md'.length))
      const why = parsed.type === 'invalid' ? parsed.problem : refusal(parsed.template.name, templates)
      if (why !== undefined) problems.push(`${oneLine(path)} was left out: ${why}.`)
      else if (parsed.type === 'template') templates.set(parsed.template.name, { ...parsed.template, path, source })
    }
  }
  return { templates: [...templates.values()], problems }
}

function refusal(name: string, templates: ReadonlyMap<string, Template>): string | undefined {
  const other = templates.get(name)
  if (other) return `the template "${name}" already exists, ${oneLine(other.path)}`
  return templates.size === maxTemplates ? `the limit of ${maxTemplates} templates is reached` : undefined
}

export type ParsedTemplate =
  | { type: 'template'; template: Omit<Template, 'path' | 'source'> }
  | { type: 'invalid'; problem: string }

/** Parses a template. Front matter is optional; without a description its first line is used. */
export function parseTemplate(text: string, name: string): ParsedTemplate {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)) {
    const problem = 'its name must have at most 64 letters, digits, hyphens and underscores'
    return { type: 'invalid', problem }
  }
  const parsed = parseFrontMatter(text)
  if (parsed.type === 'invalid') return { type: 'invalid', problem: `${parsed.problem} (line ${parsed.line})` }
  const body = parsed.body.trim()
  if (body === '') return { type: 'invalid', problem: 'it is empty' }
  const description = wordsOf(parsed.fields.get('description')) ?? wordsOf(body.split('\n', 1)[0]) ?? ''
  const argumentHint = wordsOf(parsed.fields.get('argument-hint'))
  return {
    type: 'template',
    template: { name, description, ...(argumentHint !== undefined && { argumentHint }), body },
  }
}

const maxWords = 200

/** One line for a list of commands. A hint such as `[file]` is a list in YAML, and is converted back to text. */
function wordsOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return wordsOf(`[${value.filter((each) => typeof each === 'string').join(', ')}]`)
  if (typeof value !== 'string') return undefined
  const words = oneLine(value.replace(/\s+/g, ' ').trim())
  if (words === '') return undefined
  return words.length > maxWords ? `${words.slice(0, maxWords)}…`.toWellFormed() : words
}
