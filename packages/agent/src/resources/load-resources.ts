import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import { loadInstructions, type Instructions } from './instructions.ts'
import type { Skill, SkillPlace } from './skills.ts'
import type { Template, TemplatePlace } from './templates.ts'
import { listTrusted, type TrustedContent } from './resource-files.ts'

/** The resources in files beside the settings. */
export interface Resources {
  skills: readonly Skill[]
  templates: readonly Template[]
  instructions: readonly Instructions[]
  /** A sentence for each file that was left out or truncated, with its path. */
  problems: readonly string[]
}

/** All paths are absolute. */
export interface ResourcePlaces {
  cwd: string
  home: string
  /** The folder of the user's configuration. */
  configFolder: string
  /** Absent if the working folder is not in a repository: then it is the whole project. */
  repositoryRoot?: string
  /** If false, nothing of the project is read or searched. */
  isTrusted: boolean
  /**
   * The configuration of the project as the user trusted it: its skills and templates are read from here. Absent: from
   * disk.
   */
  content?: TrustedContent
  /** From extensions: folders that contain skill folders. */
  extraSkillFolders?: readonly string[]
  /** From extensions: folders whose Markdown files are templates. */
  extraTemplateFolders?: readonly string[]
}

const maxProblems = 100

/** Loads skills, templates and instructions. In each list of folders, the first skill or template with a name wins. */
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
  return [...problems.slice(0, maxProblems), `${problems.length - maxProblems} more problems are not listed.`]
}
