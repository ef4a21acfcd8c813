import { grantTrust, inspectProject, TrustStore } from '@tapetree/agent/settings'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'

const scripted = fileURLToPath(
  new URL('../../packages/agent/src/language-servers/testing/scripted-server.ts', import.meta.url),
)
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

const files = {
  '.git/HEAD': 'ref: refs/heads/main\n',
  'pyproject.toml': '',
  // Without anything to trust, no repository is trusted.
  '.tapetree/prompts/review.md': 'Review $1 with care.',
  'node_modules/.bin/pyright-langserver': `#!/bin/sh\nexec '${process.execPath}' '${scripted}' pull\n`,
}

/** A trusted repository in which each line with the word BAD is an error of `pyright`. It is removed when it is disposed. */
export async function languageProject(home: Pick<FakeHome, 'env'>): Promise<{ cwd: string } & AsyncDisposable> {
  // Programs in the sandbox do not see the folders in /tmp.
  const cwd = await mkdtemp(join(modules, '.project-'))
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true })
    await writeFile(join(cwd, path), content, { mode: 0o755 })
  }
  await grantTrust(await inspectProject(cwd, cwd), new TrustStore(home.env['TAPETREE_HOME'] ?? ''))
  return { cwd, [Symbol.asyncDispose]: () => rm(cwd, { recursive: true, force: true }) }
}
