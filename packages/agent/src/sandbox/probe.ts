import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram } from '../util/find-program.ts'
import { bwrapArguments } from './bwrap-arguments.ts'
import type { SandboxPolicy } from './sandbox-policy.ts'

/** Whether commands can be run in a sandbox on this machine. */
export type SandboxSupport =
  | { type: 'bubblewrap'; path: string; version: string }
  /** `repair` is what the user can do about it. */
  | { type: 'none'; reason: string; repair: string }

export interface ProbeOptions {
  platform?: NodeJS.Platform
  /** Where to look for programs. */
  path?: string
  /** Where the kernel shows its settings. Default: `/proc/sys`. */
  kernelSettings?: string
}

/** Tries the sandbox once: only a box that has run a program counts as working. */
export async function probeSandbox({
  platform = process.platform,
  path = process.env['PATH'] ?? '',
  kernelSettings = '/proc/sys',
}: ProbeOptions = {}): Promise<SandboxSupport> {
  if (platform !== 'linux') {
    return {
      type: 'none',
      reason: `There is no sandbox for ${platform} yet.`,
      repair: 'Commands are asked about, as in mode ask.',
    }
  }
  const bwrap = await findProgram('bwrap', path)
  if (bwrap === undefined) {
    return {
      type: 'none',
      reason: 'bubblewrap is not installed.',
      repair: 'Install the package bubblewrap, for example with: apt-get install bubblewrap',
    }
  }
  const version = /[\d.]+/.exec((await runProgram(bwrap, ['--version'])).output)?.[0] ?? 'unknown'
  const [file = bwrap, ...args] = bwrapArguments(bwrap, emptyPolicy, { cwd: '/' })
  const tried = await runProgram(file, [...args, 'true'])
  if (tried.isSuccess) return { type: 'bubblewrap', path: bwrap, version }
  return { type: 'none', ...(await explain(bwrap, tried.output, kernelSettings)) }
}

/** The boxes that a command gets, with nothing in them that depends on the machine. */
const emptyPolicy: SandboxPolicy = {
  writable: [],
  scratch: '/tmp',
  caches: [],
  hidden: [],
  pinned: [],
  readOnly: [],
  hiddenInside: [],
}

/** What stops bubblewrap, and the repair. */
async function explain(
  bwrap: string,
  output: string,
  kernelSettings: string,
): Promise<{ reason: string; repair: string }> {
  const settingOf = async (name: string): Promise<string | undefined> => {
    const text = await readFile(join(kernelSettings, name), 'utf8').catch(() => undefined)
    return text?.trim()
  }
  const said = output.trim().split('\n')[0] ?? ''
  if (/unknown option/i.test(output)) {
    return { reason: `This version of bubblewrap is too old: ${said}.`, repair: 'Install bubblewrap 0.8 or later.' }
  }
  if ((await settingOf('kernel/apparmor_restrict_unprivileged_userns')) === '1') {
    return {
      reason: `AppArmor does not let bubblewrap create user namespaces: ${said}.`,
      repair: `Save this as /etc/apparmor.d/bwrap and run: systemctl reload apparmor\n${appArmorProfile(bwrap)}`,
    }
  }
  if ((await settingOf('kernel/unprivileged_userns_clone')) === '0') {
    return {
      reason: `The kernel does not let users create user namespaces: ${said}.`,
      repair: 'As root, run: sysctl -w kernel.unprivileged_userns_clone=1',
    }
  }
  if ((await settingOf('user/max_user_namespaces')) === '0') {
    return {
      reason: `The kernel allows no user namespaces: ${said}.`,
      repair: 'As root, run: sysctl -w user.max_user_namespaces=15000',
    }
  }
  return {
    reason: `bubblewrap cannot create a sandbox here: ${said}.`,
    repair: 'In a container, allow user namespaces, or use the container itself as the boundary.',
  }
}

function appArmorProfile(bwrap: string): string {
  return [
    'abi <abi/4.0>,',
    'include <tunables/global>',
    `profile bwrap ${bwrap} flags=(unconfined) {`,
    '  userns,',
    '  include if exists <local/bwrap>',
    '}',
  ].join('\n')
}

const patienceMs = 10_000

function runProgram(file: string, args: string[]): Promise<{ isSuccess: boolean; output: string }> {
  return new Promise((resolve) => {
    execFile(file, args, { timeout: patienceMs }, (error, stdout, stderr) => {
      resolve({ isSuccess: error === null, output: stdout + stderr })
    })
  })
}
