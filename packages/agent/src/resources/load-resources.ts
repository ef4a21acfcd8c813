import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import { loadInstructions, type Instructions } from './instructions.ts'
import type { Skill, SkillPlace } from './skills.ts'
import type { Template, TemplatePlace } from './templates.ts'
import { listTrusted, type TrustedContent } from './resource-files.ts'

/** What is found in files beside the settings. */
export interface Resources {
  skills: readonly Skill[]
  templates: readonly Template[]
  instructions: readonly Instructions[]
  /** What was left out or cut, a sentence each, with the path of the file. */
  problems: readonly string[]
}

/** All paths are absolute. */
export interface ResourcePlaces {
  cwd: string
  home: string
  /** Where the user's own configuration is. */
  configFolder: string
  /** Absent where the working folder is in no repository: then it is the whole project. */
  repositoryRoot?: string
  /** Nothing of a project that is not trusted is read, and nothing in it is looked for. */
  isTrusted: boolean
  /** The configuration of the project as it was trusted: its skills and templates are read from here. Absent: from the disk. */
  content?: TrustedContent
  /** Of extensions: folders whose folders are skills. */
  extraSkillFolders?: readonly string[]
  /** Of extensions: folders whose Markdown files are templates. */
  extraTemplateFolders?: readonly string[]
}

const maxProblems = 100

/** Reads skills, templates and instructions. In each list of places the first to have a name keeps it. */
export async function loadResources(places: ResourcePlaces): Promise<Resources> {
  const { home, configFolder, content, extraSkillFolders = [], extraTemplateFolders = [] } = places
  const project = places.isTrusted ? await projectFolders(places) : { root: undefined, folders: [] }
  const within = project.root === undefined ? {} : { within: project.root }
  const own = { ...within, ...(content && { content }) }
  // Settings of a project may name folders of its configuration.
  const extra = (folder: string) => (content && listTrusted(content, folder).names.length > 0 ? { content } : {})
  const nearestFirst = project.folders.toReversed()

  const skillPlaces: SkillPlace[] = [
    { folder: join(home, '.agents', 'skills'), source: 'user' },
    ...nearestFirst.map((at): SkillPlace => ({ folder: join(at, '.agents', 'skills'), source: 'project', ...own })),
    { folder: join(configFolder, 'skills'), source: 'config' },
    ...extraSkillFolders.map((folder): SkillPlace => ({ folder, source: 'extension', ...extra(folder) })),
  ]
  const templatePlaces: TemplatePlace[] = [
    { folder: join(configFolder, 'prompts'), source: 'config' },
    ...nearestFirst.map((at): TemplatePlace => ({
      folder: join(at, '.tapetree', 'prompts'),
      source: 'project',
      ...own,
    })),
    ...extraTemplateFolders.map((folder): TemplatePlace => ({ folder, source: 'extension', ...extra(folder) })),
  ]
  // Loaded on demand: the parser is large.
  const { loadSkills } = await import('./skills.ts')
  const { loadTemplates } = await import('./templates.ts')
  const skills = await loadSkills(skillPlaces)
  const templates = await loadTemplates(templatePlaces)
  const instructions = await loadInstructions([
    { folder: configFolder, source: 'user' },
    ...project.folders.map((folder) => ({ folder, source: 'project' as const, ...within })),
  ])
  return {
    skills: skills.skills,
    templates: templates.templates,
    instructions: instructions.instructions,
    problems: bounded([...skills.problems, ...templates.problems, ...instructions.problems]),
  }
}

/** From the root of the repository down to the working folder, without symbolic links. */
async function projectFolders({ cwd, repositoryRoot }: ResourcePlaces): Promise<{ root: string; folders: string[] }> {
  const here = await realpath(cwd)
  const above = repositoryRoot === undefined ? here : await realpath(repositoryRoot)
  const root = isInside(here, above) ? above : here
  const folders = [here]
  for (let folder = here; folder !== root;) {
    folder = dirname(folder)
    folders.unshift(folder)
  }
  return { root, folders }
}

function bounded(problems: readonly string[]): string[] {
  if (problems.length <= maxProblems) return [...problems]
  return [...problems.slice(0, maxProblems), `There are ${problems.length - maxProblems} more problems of this kind.`]
}
