import type { Case } from './oracle.ts'
import type { Workspace } from './world.ts'

/**
 * Commands that once were approved although they write, run something or read a secret. They must be asked about, and must do their
 * harm when they run, so that the proof would see them.
 */
export const holes: readonly Case[] = Object.entries<readonly string[]>({
  arena: [
    // A parameter that is empty in a new shell.
    'sort $!-oC a.txt',
    'sort "$!"-oC a.txt',
    'rg "$!"--pre=./p.sh a a.txt',
    'git log "$!"--output=C',
    `echo 'touch C #a' | sed "s/a/\\\\$!/p;s/e;#/x/"`,
    // A variable that a loop reads anew.
    `x=p; while sed -n "$x" a.txt; do read -r "x" || break; done <<< '1e touch C'`,
    'x=-n; while sort "$x" a.txt; do command read x || break; done <<< -oC',
    'x=a.txt; while cat "$x"; do read -r \\x || break; done <<< .env',
    'x=a.txt; until ! cat "$x"; do read -r \'x\' || break; done <<< .env',
    // Options that are abbreviated, or that nobody listed.
    'grep --reg=. .env',
    'grep --recurs S3 ~',
    'grep -d recurse S3 ~',
    'grep --directories=recurse S3 ~',
    'grep -drecurse S3 $HOME',
    'du --files0-from .env',
    'findmnt -F ~/.aws/credentials',
    'findmnt --tab-file ~/.aws/credentials',
    "jq -n --rawfile -x .env '$ARGS.named'",
    'strings @../home/.netrc',
  ],
  links: [
    'cat link/../gh/hosts.yml',
    'cat kube/../config',
    'grep -rh S3 link/..',
    'rg --hidden S3 link/..',
    'cat < link/../gh/hosts.yml',
    'cd -P link/..; cat gh/hosts.yml',
    'cd link; cat ../gh/hosts.yml',
    'cat /var/run/../etc/shadow',
    'cat *.txt',
    'grep -R S3 .',
    'grep -r S3 *',
    'rg -L S3',
    'diff -r one two',
    'ls | xargs cat',
    'cat */*',
    'cat proc/environ',
  ],
  odd: [
    'cat $(git ls-files)',
    'git ls-files docs | xargs cat',
    'find . -type f | xargs head -n 3',
    'find docs -type f | while read -r a b; do cat "$b"; done',
    'ls -A fake | (cd ~; xargs cat)',
    'cd ~/.ssh; cat $(ls ../../odd/fake)',
    'cd ~/.ssh; ls ../../odd/fake | xargs -I{} cat ./{}',
  ],
  repos: [
    'git -C commondir status',
    'cd commondir && git diff',
    'cd commondir && git ls-files -m',
    'git -C headlink status',
    'git -C hostile/app status',
    'git -C history log -p --submodule=diff',
    'git -C history diff --submodule=diff HEAD~2 HEAD~1',
    'git -C tracked log -L1,1:.env',
    "git -C tracked grep -h S3 -- '.en?'",
    'git -C tracked diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD',
    'git -C tracked log -S S3 -p',
  ],
}).flatMap(([workspace, commands]) => commands.map((command) => ({ workspace: workspace as Workspace, command })))

/** The same for the mode that lets a workspace be edited. */
export const editHoles: readonly Case[] = [
  'echo x >> hooks-link/../config',
  'echo hi > link/../new.service',
  'echo hi > dangling',
  'echo hi > gitlink/config',
].map((command) => ({ workspace: 'links', command }))

/** One of each kind that must be seen, so that a proof without problems had eyes. */
export const misdeeds: readonly Case[] = [
  'touch C1',
  'echo hi > C2',
  'true | cat a.txt | tee C3 | true',
  'mkdir C4',
  'ln -s a.txt C5',
  'mv b.txt C6',
  'rm b.txt',
  'chmod 600 a.txt',
  'touch a.txt',
  './p.sh',
  'bash -c :',
  'node -e 0',
  'echo hi | xargs env true',
  'cat < /dev/tcp/127.0.0.1/9',
  'echo hi > /dev/udp/127.0.0.1/9',
  'git gc -q',
  'ls & sh -c : & wait',
  'cat .env',
  'base64 < .env',
  'cat ~/.ssh/id_rsa >/dev/null',
  'echo "$(< ~/.netrc)"',
  'cd ..; grep -rc S3 home',
  'rg --hidden -c S3 ~',
  'cat ../outside/private/x',
  'cat /proc/self/environ',
  'git -C ../repos/tracked log -p',
  'git -C ../repos/tracked show HEAD:.env',
].map((command) => ({ workspace: 'arena', command }))
