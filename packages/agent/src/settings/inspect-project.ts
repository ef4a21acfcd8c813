import { lstat, realpath } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'
import { readBounded } from './bounded-file.ts'
import { projectCommands, type ProjectCommand } from './project-commands.ts'
import { parseSettingsFile, projectSettingsFiles, type FileSettings } from './project-settings.ts'
import { isWithin, readProject, sha256Of, type ProjectContent } from './project.ts'
import { summariseProject } from './summarise-project.ts'

/** A program of the repository that its configuration starts. */
interface ProjectProgram {
  path: string
  sha256: string
}

/** What a repository would have us do, for somebody who is to decide about it. Nothing of it is in force. */
export interface Project extends ProjectContent {
  /** What its settings say, with what is wrong in them; absent where there are none. */
  settings?: FileSettings & { path: string }
  commands: ProjectCommand[]
  programs: ProjectProgram[]
  /** Of the paths and contents of all files and programs. */
  hash: string
  /** Lines for the question, safe to show, none shortened. */
  summary: string[]
}

/** Larger programs are started without being bound to their content, and the summary says so. */
const maxProgramBytes = 8 * 1024 * 1024
const maxPrograms = 64

/** Reads, and does nothing else: no program is started, nothing is written, no name is looked up. */
export async function inspectProject(root: string, cwd: string = root): Promise<Project> {
  const content = await readProject(root, cwd)
  const [settingsFile] = projectSettingsFiles(content.files)
  const settings = settingsFile && { ...(await parseSettingsFile(settingsFile)), path: settingsFile.path }
  const commands = settings ? projectCommands(settings.settings, content.root) : []
  const { programs, leftOut } = await readPrograms(commands, content)
  const project = {
    ...content,
    leftOut: [...content.leftOut, ...leftOut],
    commands,
    programs,
    ...(settings && { settings }),
  }
  const isForeign = (await lstat(content.root)).uid !== (process.getuid?.() ?? 0)
  return { ...project, hash: hashOf(project), summary: summariseProject(project, { isForeign }) }
}

function hashOf({ files, programs }: Pick<Project, 'files' | 'programs'>): string {
  const lines = [...files, ...programs].map(({ path, sha256 }) => JSON.stringify([path, sha256]))
  return sha256Of(lines.sort().join('\n'))
}

async function readPrograms(
  commands: readonly ProjectCommand[],
  { root, files }: ProjectContent,
): Promise<Pick<Project, 'programs' | 'leftOut'>> {
  const known = new Set(files.map(({ path }) => path))
  const programs: ProjectProgram[] = []
  const leftOut: Project['leftOut'] = []
  for (const word of new Set(commands.flatMap(({ words }) => words))) {
    const real = await fileOf(word, root)
    if (real === undefined) continue
    const path = relative(root, real).split(sep).join('/')
    if (known.has(path)) continue
    known.add(path)
    const result = await readBounded(real, maxProgramBytes)
    if (result.type === 'read' && programs.length < maxPrograms) {
      programs.push({ path, sha256: sha256Of(result.bytes) })
    } else {
      const reason = result.type === 'refused' ? result.reason : 'There are too many.'
      leftOut.push({ path, reason: `${reason} It would be started whatever it holds.` })
    }
  }
  return { programs, leftOut }
}

async function fileOf(word: string, root: string): Promise<string | undefined> {
  try {
    const real = await realpath(resolve(root, word))
    return isWithin(real, root) && (await lstat(real)).isFile() ? real : undefined
  } catch {
    return undefined // no file of this name
  }
}
