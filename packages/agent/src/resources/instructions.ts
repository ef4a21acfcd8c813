import { join } from 'node:path'
import { oneLine } from '../util/visible-text.ts'
import { readLimited } from './resource-files.ts'

/** Written instructions of people for every agent that works here. Text for the model, nothing more. */
export interface Instructions {
  /** Absolute. */
  path: string
  source: 'user' | 'project'
  text: string
}

/** A folder that may contain instructions. */
export interface InstructionPlace {
  folder: string
  source: Instructions['source']
  /** A folder that symbolic links must not leave, without links itself. */
  within?: string
}

const fileNames = ['AGENTS.md', 'CLAUDE.md']
const maxBytes = 48 * 1024
/** Of all files together, in characters. */
const maxTotal = 192 * 1024

/**
 * The instructions of all folders, in order: later ones are nearer to the working folder and override earlier ones. Two
 * equal files in a folder count once.
 */
export async function loadInstructions(
  places: readonly InstructionPlace[],
): Promise<{ instructions: Instructions[]; problems: string[] }> {
  const found: Instructions[] = []
  const seen = new Set<string>()
  const problems: string[] = []
  for (const { folder, source, within } of places) {
    const inFolder: string[] = []
    for (const name of fileNames) {
      const path = join(folder, name)
      const read = await readLimited(path, { maxBytes, whenLonger: 'cut', ...(within !== undefined && { within }) })
      if (read.type === 'refused') problems.push(read.problem)
      if (read.type !== 'text' || seen.has(read.realPath)) continue
      seen.add(read.realPath)
      const text = read.text.trim()
      if (text === '' || inFolder.includes(text) || isReference(text)) continue
      inFolder.push(text)
      if (read.isCut) problems.push(`${oneLine(path)} was truncated: it has more than ${maxBytes} bytes.`)
      const note = `\n\n[The file continues after ${maxBytes} bytes. Read the rest if you need it.]`
      found.push({ path, source, text: read.isCut ? text + note : text })
    }
  }
  const { kept, dropped } = withinTotal(found)
  const tooMuch = dropped.map(({ path }) => `${oneLine(path)} was left out: the instructions are too long in total.`)
  return { instructions: kept, problems: [...problems, ...tooMuch] }
}

/** A CLAUDE.md that only points to the AGENTS.md beside it. */
function isReference(text: string): boolean {
  return /^@(?:\.\/)?AGENTS\.md$/.test(text)
}

/** The user's own come first, then those nearest to the working folder. */
function withinTotal(found: readonly Instructions[]): { kept: Instructions[]; dropped: Instructions[] } {
  const byWeight = [
    ...found.filter(({ source }) => source === 'user'),
    ...found.filter(({ source }) => source === 'project').reverse(),
  ]
  const kept = new Set<Instructions>()
  let total = 0
  for (const each of byWeight) {
    if (total + each.text.length > maxTotal) continue
    total += each.text.length
    kept.add(each)
  }
  return { kept: found.filter((each) => kept.has(each)), dropped: found.filter((each) => !kept.has(each)) }
}
