import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { limitProblem } from '../sandbox/command-limits.ts'
import type { SandboxSupport } from '../sandbox/probe.ts'
import { registryHosts } from '../sandbox/registry-hosts.ts'
import { Sandbox, sandboxFolder, type SandboxOptions, type SandboxPlace } from '../sandbox/sandbox.ts'
import { SettingsError } from '../settings/config-files.ts'
import type { LoadedSettings } from '../settings/layers.ts'
import type { CommandLimits } from '../tools/commands/exit-file.ts'
import type { BoxProgram, OwnProgram } from '../tools/commands/program-box.ts'
import { unmovedText } from '../tools/commands/settle-controls.ts'

export interface AgentSandboxes {
  /** For the commands of the model. */
  commands: () => Promise<Sandbox>
  /** For hooks, servers and git. */
  box: BoxProgram
}

export interface SandboxesOptions {
  home: string
  /** Of the user. */
  env: Readonly<Record<string, string | undefined>>
  workingFolder: string
  /** The root of the project around it. */
  projectRoot: string
  settings: Pick<LoadedSettings, 'values' | 'origins'>
  /** Called once if programs run outside because no sandbox works. A sentence. */
  onMissing: (message: string) => void
}

/** The sandboxes of a folder, opened once. Sessions of the same folder share their caches. */
export function sandboxesOf(
  { folder, own, support }: SandboxPlace,
  { home, env, workingFolder, projectRoot, settings, onMissing }: SandboxesOptions,
): AgentSandboxes {
  const { showsSecretFiles, reachesRegistries, limits } = settings.values.sandbox
  const keep = sandboxFolder(folder, workingFolder)
  const options: SandboxOptions = {
    ...{ folders: [workingFolder], home, keep, own: [folder, ...own], showsOwnSecrets: showsSecretFiles },
    ...(support && { support }),
    ...(reachesRegistries && { registryHosts: registryHosts({ home, folders: [workingFolder, projectRoot], env }) }),
  }
  let opened: Promise<Sandbox> | undefined
  const commands = (): Promise<Sandbox> => (opened ??= Sandbox.open({ ...options, limits }))
  let isTold = false
  const box: BoxProgram = async (program) => {
    if (isLetOut(program, settings)) return undefined
    const { support: found } = await commands()
    if (found.type !== 'none') {
      const folders = [workingFolder, ...(program.type === 'agent' ? program.folders : [])]
      return boxOf(program, { sandbox: await Sandbox.open({ ...options, folders, support: found }), keep })
    }
    if (!isTold && program.type !== 'git') {
      isTold = true
      onMissing(
        `Hooks, MCP servers and other agents run without a sandbox, with all your rights. ${found.reason} ${found.repair}`,
      )
    }
    return undefined
  }
  return { commands, box }
}

/** Only settings of the user let a program out. A server of a project never gets out by having the name of another one. */
function isLetOut(program: OwnProgram, { values, origins }: SandboxesOptions['settings']): boolean {
  const { outsideHooks, outsideServers } = values.sandbox
  if (program.type === 'hook') return outsideHooks.includes(program.command)
  if (program.type === 'git' || program.type === 'language-server' || program.type === 'agent') return false
  return outsideServers.includes(program.name) && origins.get(`mcpServers.${program.name}`)?.layer !== 'project'
}

async function boxOf(
  program: OwnProgram,
  { sandbox, keep }: { sandbox: Sandbox; keep: string },
): ReturnType<BoxProgram> {
  const { cwd } = program
  // Only a hook ends soon enough to look at what it has made.
  const spool = program.type === 'hook' ? join(keep, 'programs', randomUUID()) : undefined
  const { argv, env } = await sandbox.box(cwd, {
    isReadOnly: program.type === 'git' || program.type === 'language-server',
    // A server mostly stands for a service elsewhere, and an agent needs its model.
    hasMachineNetwork: program.type === 'server' || program.type === 'agent',
    ...(spool !== undefined && { spool }),
    ...(program.type === 'agent' && { shown: program.folders }),
  })
  return {
    argv,
    env,
    settle: async () => {
      if (spool === undefined) return undefined
      const taken = await sandbox.takeBack({ cwd, spool })
      await taken?.leave()
      await rm(spool, { recursive: true, force: true })
      if (!taken) return undefined
      const names = taken.writes.map(({ path }) => path).join(', ')
      const moved = `It made files that control what other programs run: ${names}. They were moved out of the working folder. To see or apply them, type /blocked.`
      return [...(names === '' ? [] : [moved]), ...unmovedText('It', taken)].join(' ')
    },
  }
}

/** Throws if commands cannot run in a sandbox with these limits. */
export function requireSandbox(support: SandboxSupport = noSandbox, limits: CommandLimits = {}): void {
  if (support.type !== 'none') {
    const problem = limitProblem(limits)
    if (problem === undefined) return
    throw new SettingsError('sandbox-missing', problem)
  }
  throw new SettingsError(
    'sandbox-missing',
    `A sandbox is required, and commands cannot run in one here. ${support.reason} ${support.repair}`,
  )
}

const noSandbox: SandboxSupport = { type: 'none', reason: 'This program offers no sandbox.', repair: '' }
