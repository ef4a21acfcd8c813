import type { Project } from './inspect-project.ts'
import { SettingsError } from './config-files.ts'
import type { Grant, TrustStore } from './trust-store.ts'
import { visibleName } from '../util/visible-text.ts'

/**
 * Whether the configuration of a repository applies. Only the content that was read for the state `trusted` may be
 * used: its bytes are in the project, so that they cannot change in between.
 */
export type ProjectTrust =
  | { state: 'trusted'; project: Project }
  | { state: 'untrusted'; project: Project; reason: string }
  /** The user has trusted another version. */
  | { state: 'changed'; project: Project; changes: TrustChange[] }
  | { state: 'nothing-to-trust'; project: Project }

export interface TrustChange {
  change: 'added' | 'removed' | 'changed'
  what: 'file' | 'program' | 'module' | 'command'
  /** Safe to show. */
  name: string
}

export async function trustOf(project: Project, store: TrustStore): Promise<ProjectTrust> {
  const { root, files, isComplete } = project
  if (!isComplete) return { state: 'untrusted', project, reason: tooMuch(root) }
  const grant = await store.read(root)
  if (!grant) {
    if (files.length === 0) return { state: 'nothing-to-trust', project }
    return { state: 'untrusted', project, reason: `${visibleName(root)} is not trusted.` }
  }
  const changes = changesSince(grant, project)
  if (changes.length > 0) return { state: 'changed', project, changes }
  return { state: files.length === 0 ? 'nothing-to-trust' : 'trusted', project }
}

/**
 * Like `trustOf`, but asks the user if possible. Without a user (no terminal), nothing becomes trusted: only what the
 * user has trusted before and what is still the same, byte for byte.
 */
export async function settleTrust(
  project: Project,
  store: TrustStore,
  ask?: (trust: ProjectTrust) => Promise<boolean>,
): Promise<ProjectTrust> {
  const trust = await trustOf(project, store)
  const isOpen = (trust.state === 'untrusted' && project.isComplete) || trust.state === 'changed'
  if (!ask || !isOpen || !(await ask(trust))) return trust
  await grantTrust(project, store)
  return { state: 'trusted', project }
}

/** Trusts a project as it was inspected, whatever has changed meanwhile. */
export async function grantTrust(project: Project, store: TrustStore, now: () => number = Date.now): Promise<void> {
  const { root, isComplete } = project
  if (!isComplete) throw new SettingsError('cannot-trust', tooMuch(root))
  const earlier = await store.read(root)
  const files = { ...outsideOf(project, earlier?.files ?? {}), ...filesOf(project) }
  await store.write({
    version: 1,
    root,
    grantedAt: now(),
    files,
    programs: programsOf(project),
    modules: modulesOf(project),
    commands: commandsOf(project),
  })
}

export async function revokeTrust(root: string, store: TrustStore): Promise<void> {
  await store.remove(root)
}

function tooMuch(root: string): string {
  return `The configuration of ${visibleName(root)} has too many files to inspect, so it cannot be trusted.`
}

function changesSince(grant: Grant, project: Project): TrustChange[] {
  const outside = outsideOf(project, grant.files)
  const files = Object.fromEntries(Object.entries(grant.files).filter(([path]) => !(path in outside)))
  return [
    ...difference('file', files, filesOf(project)),
    ...difference('program', grant.programs, programsOf(project)),
    ...difference('module', grant.modules, modulesOf(project)),
    ...difference('command', grant.commands, commandsOf(project)),
  ]
}

type Hashes = Record<string, string>

function difference(what: TrustChange['what'], earlier: Hashes, later: Hashes): TrustChange[] {
  const before = new Map(Object.entries(earlier))
  const after = new Map(Object.entries(later))
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((name): TrustChange[] => {
    if (before.get(name) === after.get(name)) return []
    const change = !before.has(name) ? 'added' : !after.has(name) ? 'removed' : 'changed'
    return [{ change, what, name: visibleName(name) }]
  })
}

/** The granted files of folders that are not above this working folder. */
function outsideOf({ folders }: Project, files: Hashes): Hashes {
  const seen = new Set(folders)
  const folderOf = (path: string): string => /^(?:(.*?)\/)?\.(?:tapetree|agents)(?:\/|$)/.exec(path)?.[1] ?? ''
  return Object.fromEntries(Object.entries(files).filter(([path]) => !seen.has(folderOf(path))))
}

function filesOf({ files }: Project): Hashes {
  return Object.fromEntries(files.map(({ path, sha256 }) => [path, sha256]))
}

function programsOf({ programs }: Project): Hashes {
  return Object.fromEntries(programs.map(({ path, sha256 }) => [path, sha256]))
}

function modulesOf({ modules }: Project): Hashes {
  return Object.fromEntries(modules.map(({ path, sha256 }) => [path, sha256]))
}

function commandsOf({ commands }: Project): Hashes {
  return Object.fromEntries(commands.map(({ name, sha256 }) => [name, sha256]))
}
