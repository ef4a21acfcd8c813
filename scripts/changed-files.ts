import { execFileSync } from 'node:child_process'

export interface ChangedFilesOptions {
  /** Revisions of the other side, the first that exists counts. Of a branch, the commit where HEAD left it counts. */
  bases: readonly string[]
  folder?: string
}

/** The files that differ from a base, uncommitted and deleted ones included. Undefined if there is no such base, as in a shallow clone. */
export function changedFiles({ bases, folder = '.' }: ChangedFilesOptions): string[] | undefined {
  const git = (...args: string[]): string | undefined => runGit(folder, args)
  for (const base of bases) {
    const left = git('merge-base', 'HEAD', base)?.trim()
    const differing = left === undefined ? undefined : git('diff', '--name-only', '--no-renames', left)
    const untracked = git('ls-files', '--others', '--exclude-standard')
    if (differing === undefined || untracked === undefined) continue
    return [...new Set([...differing.split('\n'), ...untracked.split('\n')])].filter(Boolean)
  }
  return undefined
}

function runGit(cwd: string, args: string[]): string | undefined {
  try {
    const maxBuffer = 64 * 1024 * 1024
    return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer })
  } catch {
    return undefined // No repository or no such revision.
  }
}
