import {
  configFolder,
  findProjectRoot,
  inspectProject,
  settleTrust,
  TrustStore,
  type ProjectTrust,
} from '@tapetree/agent'
import { stylesFor } from '../command-line/colour.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import { write, type Io } from '../command-line/io.ts'
import { askLine } from '../command-line/ask-line.ts'

/** Asks about a repository that would have something done, before anything of it holds. No answer is a no. */
export async function askTrust(cwd: string, io: Io): Promise<ProjectTrust> {
  const project = await inspectProject(await findProjectRoot(cwd), cwd)
  return settleTrust(project, new TrustStore(configFolder(io)), async (trust) => {
    await write(io.stderr, `${summaryOf(trust, io)}\n`)
    const answer = await askLine(io, 'Trust it? [y/N] ')
    return /^(?:y|yes)$/i.test(answer)
  })
}

/** Who trusts it again sees what changed, and all that it would do now: whatever of it is new stands there in full. */
function summaryOf(trust: ProjectTrust, { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { bold, yellow } = stylesFor(stderr, env)
  const { project } = trust
  const root = harmlessLine(project.root)
  const all = project.summary.map((line) => `  ${harmless(line)}`)
  if (trust.state !== 'changed') {
    return [`${bold(root)} has settings of its own, and nobody has trusted them yet:`, ...all].join('\n')
  }
  const changes = trust.changes.map(({ change, what, name }) => `  ${yellow(change)} ${what} ${harmlessLine(name)}`)
  return [
    `${bold(root)} was trusted, and is not the same any more:`,
    ...changes,
    ...(all.length > 0 ? ['This is all that it would do now:', ...all] : []),
  ].join('\n')
}
