import { execFileSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Files that commands of the corpus and of the grammar name. Whoever runs `p.sh`, or believes what a text says, leaves the canary. */
const files: Record<string, string> = {
  'a.txt': 'a\nb c\n3 x\n',
  'b.txt': 'b\n',
  'name.txt': 'C\n',
  'cmd.txt': 'touch C\n',
  'q.txt': '"\n',
  'b64.txt': 'dG91Y2ggQw==\n',
  'rev.txt': 'C hcuot\n',
  'subscript.txt': 'a[$(touch${IFS}C)]\n',
  'unary.txt': '-v a[$(touch${IFS}C)]\n',
  'prompt.txt': '$(touch C)\n',
  'sed.txt': 'w C\n',
  'awk.txt': 'BEGIN{print > "C"}\n',
  'py.txt': "open('C','w')\n",
  'perl.txt': "open F,'>','C';\n",
  'evil.js': "require('fs').writeFileSync('C','')\n",
  'make.mk': 'x:\n\ttouch C\n',
  'curl.conf': 'output = C\nurl = file:///etc/hostname\n',
  'rg.conf': '--pre=./p.sh\n',
  'git.conf': '[core]\n\tfsmonitor = ./p.sh\n',
  'xdg/git/config': '[core]\n\tfsmonitor = ./p.sh\n',
  'xdg/.gitconfig': '[core]\n\tfsmonitor = ./p.sh\n',
  'attr.txt': '* diff=x\n',
  'magic.txt': '0 string a b\n',
  'new.patch': '--- /dev/null\n+++ b/C\n@@ -0,0 +1 @@\n+x\n',
  'a.json': '{"cmd":"touch C","list":[1,2,3],"name":"a"}\n',
  'package.json':
    '{"name":"arena","version":"1.0.0","scripts":{"canary":"touch C","test":"touch C","start":"touch C"}}\n',
  // A name that a wildcard turns into an option.
  '-oC': 'x\n',
  'g/c.txt': 'c\n',
  'src/one.ts': "import { two } from './two.ts'\n// TODO: one\nexport const one = two - 1\n",
  'src/two.ts': 'export const two = 2\n',
  '.hidden': 'h\n',
}

const scripts = ['p.sh', 'ls', 'git-x.sh', 'hooks/post-commit', 'hooks/post-checkout']

/** A folder with a repository in which everything waits that a careless judge would let run. */
export async function makeArena(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  for (const name of scripts) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), '#!/bin/sh\ntouch "${0%/*}/C" C\ncat\n')
    await chmod(join(folder, name), 0o755)
  }
  makeRepository(folder)
  run(folder, 'tar', ['cf', 't.tar', 'a.txt'])
  await writeFile(join(folder, 'C'), '')
  run(folder, 'tar', ['cf', 'c.tar', 'C'])
  run(folder, 'rm', ['C'])
}

function makeRepository(folder: string): void {
  const git = (...words: string[]): void => run(folder, 'git', words)
  git('init', '-q', '-b', 'main')
  git('config', 'user.name', 'Arena')
  git('config', 'user.email', 'arena@example.org')
  git('add', 'a.txt', 'b.txt', 'src', 'package.json')
  git('commit', '-q', '-m', 'first')
  run(folder, 'bash', ['-c', 'git checkout -q -b withC && touch C && git add C && git commit -q -m canary'])
  git('checkout', '-q', 'main')
  run(folder, 'bash', ['-c', 'echo more >> b.txt && git commit -q -a -m second && echo even more >> b.txt'])
  // It claims to be signed, so that whoever looks for signatures has a program check it.
  run(folder, 'bash', [
    '-c',
    `git cat-file commit HEAD | awk '/^$/ && !s { print "gpgsig -----BEGIN PGP SIGNATURE-----"; print " "; print " x"; print " -----END PGP SIGNATURE-----"; s = 1 } 1' |
      git hash-object -t commit -w --stdin | xargs git update-ref refs/heads/signed`,
  ])
}

function run(folder: string, program: string, words: string[]): void {
  const environment = { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1' }
  execFileSync(program, words, { cwd: folder, env: environment, stdio: 'ignore' })
}
