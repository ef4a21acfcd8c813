import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escaped, type Machine } from './machine.ts'

export interface Escape {
  /** What it abuses. */
  what: string
  command: string
  /** The command of which this is a variant. */
  plain?: string
}

const corpus = join(import.meta.dirname, '../../../../shared/corpus')

/** Attempts to write, read or reach something outside of the box. Attempts on the kernel change nothing if they succeed. */
export function escapesOf(machine: Machine): Escape[] {
  return [
    ...collected(machine),
    ...writes(machine),
    ...reads(machine),
    ...onControlFiles(),
    ...onKernel(),
    ...onProcesses(),
    ...byNetwork(machine),
  ]
}

/** Commands that have deceived the judge of commands. `C` is the file that they leave behind. */
function collected({ outside }: Machine): Escape[] {
  const lines = (name: string): string[] =>
    readFileSync(join(corpus, name), 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const judged = lines('gate-bypasses.tsv').map((line) => {
    const [what = '', command = '""'] = line.split('\t')
    return { what, command: JSON.parse(command) as string }
  })
  const shell = lines('shell-bypass.txt').map((command) => ({ what: 'shell', command }))
  return [...judged, ...shell].map(({ what, command }) => ({
    what,
    command: command.replaceAll(/(?<![\w./-])C(?![\w.-])/g, `${outside}/C`),
  }))
}

/** Each way to write, at each place that is not to be written. */
function writes({ outside, home, data, folder }: Machine): Escape[] {
  const places = {
    'a folder beside': `${outside}/file`,
    'a new file': `${outside}/new`,
    'the home folder': `${home}/.bashrc`,
    keys: `${home}/.ssh/authorized_keys`,
    'own data': `${data}/sessions/a/events.jsonl`,
    'by a link': 'link/user/a.service',
    'by two dots': '../outside/file',
    'by the root of a process': `/proc/self/root${outside}/file`,
    'by its folder': '/proc/self/cwd/../outside/file',
    'of the system': '/etc/tapetree-proof',
    'in the folder above': `${folder}/planted`,
  }
  const ways: Record<string, (path: string) => string> = {
    redirect: (path) => `echo x >> ${path}`,
    clobber: (path) => `echo x >| ${path}`,
    tee: (path) => `echo x | tee -a ${path}`,
    copy: (path) => `cp a.txt ${path}`,
    move: (path) => `cp a.txt m.txt; mv -f m.txt ${path}`,
    remove: (path) => `rm -f ${path}`,
    truncate: (path) => `truncate -s 0 ${path}`,
    mode: (path) => `chmod 777 ${path}`,
    dd: (path) => `dd if=a.txt of=${path}`,
    'link to it': (path) => `rm -f hard; ln ${path} hard && echo x >> hard`,
    'symbolic link to it': (path) => `ln -sfn ${path} soft; echo x >> soft`,
    'link in its place': (path) => `ln -sf /etc/passwd ${path}`,
    sed: (path) => `sed -i s/./x/ ${path}`,
    python: (path) => `python3 -c "open('${path}','a').write('x')"`,
    perl: (path) => `perl -e 'open(F,">>","${path}");print F "x"'`,
    rename: (path) => `perl -e 'open(F,">r");close F;rename("r","${path}")'`,
    folder: (path) => `mkdir -p ${path}.d/x`,
    archive: (path) => `tar -cf t.tar a.txt; tar -xf t.tar -C $(dirname ${path})`,
  }
  return Object.entries(places).flatMap(([place, path]) =>
    Object.entries(ways).map(([way, command]) => ({ what: `write ${place}, ${way}`, command: command(path) })),
  )
}

function reads({ home, data, work }: Machine): Escape[] {
  const places = [
    `${home}/.ssh/id_rsa`,
    `${home}/.aws/credentials`,
    `${home}/.config/gh/hosts.yml`,
    `${home}/.netrc`,
    `${home}/.npmrc`,
    `${home}/.bash_history`,
    `${data}/credentials.json`,
    `${data}/sessions/a/events.jsonl`,
    `${work}/.env`,
    `${work}/deploy/server.key`,
    `${work}/.npmrc`,
    `${work}/.envrc`,
    `${work}/.yarnrc.yml`,
    `${work}/.pypirc`,
    `${work}/nested/.npmrc`,
    'key.txt',
    'link/../gh/hosts.yml',
    `/proc/self/root${home}/.ssh/id_rsa`,
    `/proc/1/root${work}/.env`,
    `/proc/2/root${work}/.env`,
  ]
  const ways: Record<string, (path: string) => string> = {
    cat: (path) => `cat ${path}`,
    grep: (path) => `grep -h . ${path}`,
    folder: (path) => `grep -rh . $(dirname ${path})`,
    archive: (path) => `tar -cf - ${path}`,
    copy: (path) => `cp ${path} copied; cat copied`,
    link: (path) => `rm -f hard; ln ${path} hard; cat hard`,
    git: (path) => `git hash-object -w ${path} | xargs git cat-file blob`,
    python: (path) => `python3 -c "print(open('${path}').read())"`,
  }
  return places.flatMap((path) =>
    Object.entries(ways).map(([way, command]) => ({
      what: `read ${path.split('/').slice(-2).join('/')}, ${way}`,
      command: command(path),
    })),
  )
}

/** Files in the working folder that make other programs run something. */
function onControlFiles(): Escape[] {
  return [
    'echo x > .git/hooks/pre-commit',
    'echo x >> hooks-link/post-checkout',
    'cp p.sh .git/hooks/post-merge',
    'ln -s ../../p.sh .git/hooks/pre-push',
    'git config core.fsmonitor ./p.sh',
    'git config --file .git/config alias.x "!./p.sh"',
    'printf "[core]\\n\\tpager = ./p.sh\\n" >> .git/config',
    'echo "* filter=x" > .git/info/attributes',
    'mv .git .moved; git init -q',
    'mv .git/hooks .git/old; mkdir .git/hooks; cp p.sh .git/hooks/pre-commit',
    'mv .git/config .git/old',
    'rm -f .git/config; cp a.txt .git/config',
    'git -C nested config core.hooksPath ..',
    'cp p.sh nested/.git/hooks/pre-commit',
    'mv nested/.git nested/gone; git init -q nested',
    'echo x > .vscode/tasks.json',
    'rm -rf .vscode; mkdir .vscode; echo x > .vscode/tasks.json',
    'mv .vscode v',
    'echo x >> .github/workflows/ci.yml',
    'echo x > .github/workflows/new.yml',
    'rm -rf .github; mkdir -p .github/workflows',
    'echo "registry=http://127.0.0.1" >> .npmrc',
    'mv -f a.txt .envrc',
    'rm -f .yarnrc.yml; echo x > .yarnrc.yml',
    'git worktree add ../beside',
    'git init --separate-git-dir=../outside/git other',
    `python3 -c "import os;os.rename('.git','g')"`,
    `python3 -c "import os;os.rename('.git/hooks','h')"`,
  ].map((command) => ({ what: 'control files', command }))
}

function onKernel(): Escape[] {
  const settings = [
    'kernel/core_pattern',
    'kernel/modprobe',
    'kernel/hostname',
    'vm/overcommit_memory',
    'fs/file-max',
    'kernel/randomize_va_space',
  ]
  return [
    ...settings.map((name) => `cat /proc/sys/${name} > /proc/sys/${name} && echo ${escaped}`),
    'test -w /proc/sysrq-trigger && echo h > /proc/sysrq-trigger && echo ESCAPED',
    'cat /sys/kernel/uevent_helper > /sys/kernel/uevent_helper && echo ESCAPED',
    'for f in $(find /sys/fs/cgroup -name release_agent 2>/dev/null | head -3); do cat $f > $f && echo ESCAPED; done',
    'for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -3); do echo $$ > $f && echo ESCAPED; done',
    'mount -t tmpfs none /mnt && echo ESCAPED',
    'mount --bind / /mnt && echo ESCAPED',
    'mount -o remount,rw / && echo ESCAPED',
    'umount /proc && echo ESCAPED',
    'umount .git && echo ESCAPED',
    'unshare -Ur true && echo ESCAPED',
    'unshare -Urm mount --bind / /mnt && echo ESCAPED',
    'unshare -n true && echo ESCAPED',
    'bwrap --dev-bind / / true && echo ESCAPED',
    'nsenter -t 1 -m true && echo ESCAPED',
    'nsenter -t 1 -U true && echo ESCAPED',
    'chroot / true && echo ESCAPED',
    'mknod disk b 8 0 && echo ESCAPED',
    'head -c 1 /dev/mem && echo ESCAPED',
    'head -c 1 /dev/kmsg && echo ESCAPED',
    'ls /dev/vda /dev/sda 2>/dev/null && echo ESCAPED',
    'su -c true && echo ESCAPED',
    'sudo -n true && echo ESCAPED',
    'chown 12345 a.txt && echo ESCAPED',
    'cp /bin/true s; chown 0:0 s; chmod u+s s; setpriv --reuid=12345 ./s && echo ESCAPED',
    'hostname escaped && echo ESCAPED',
    'date -s @0 && echo ESCAPED',
    'ip link set lo down && echo ESCAPED',
    'ip link add e0 type dummy && echo ESCAPED',
    `python3 -c "import ctypes;l=ctypes.CDLL(None);print('${escaped}' if l.syscall(165,b'x',b'/mnt',b'tmpfs',0,0)==0 else 'no')"`,
    `python3 -c "import ctypes;l=ctypes.CDLL(None);print('${escaped}' if l.unshare(0x10000000)==0 else 'no')"`,
    `python3 -c "import ctypes;l=ctypes.CDLL(None);print('${escaped}' if l.setns(__import__('os').open('/proc/1/ns/mnt',0),0)==0 else 'no')"`,
    `python3 -c "import os;os.setuid(12345);print('${escaped}')"`,
  ].map((command) => ({ what: 'the kernel', command }))
}

function onProcesses(): Escape[] {
  const ptrace = (pid: string): string =>
    `python3 -c "import ctypes;l=ctypes.CDLL(None);print('${escaped}' if l.ptrace(16,${pid},0,0)==0 else 'no')"`
  return [
    ptrace('1'),
    ptrace('2'),
    'cat /proc/1/environ | tr "\\0" "\\n" | grep CANARY',
    'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -a CANARY',
    'for p in /proc/[0-9]*; do ls $p/root/ >/dev/null 2>&1 && cat $p/root$PWD/.env; done',
    'for p in /proc/[0-9]*; do cat $p/cwd/.env; done',
    'for f in /proc/self/fd/*; do cat $f/../.env; done',
    'ls -la /proc/self/fd | grep -c keep && echo none',
    'for f in 3 4 5 6 7 8 9; do eval "echo x >&$f" && readlink /proc/self/fd/$f | grep -v pipe && echo ESCAPED; done',
    'kill -0 -1 && kill -STOP 1',
    '[ $(ls -d /proc/[0-9]* | wc -l) -gt 20 ] && echo ESCAPED',
    'for i in $(seq 1 20); do kill -0 $((RANDOM + 20)) && echo ESCAPED; done',
    'echo 1000 > /proc/1/oom_score_adj && cat /proc/1/root/x && echo ESCAPED',
    'ipcs -q | grep -c CANARY; ls /dev/shm | grep . && echo ESCAPED',
    'ls /dev/pts | grep -v ptmx && echo ESCAPED',
  ].map((command) => ({ what: 'processes', command }))
}

function byNetwork({ ports: { tcp, address }, sockets }: Machine): Escape[] {
  const hosts = [
    '127.0.0.1',
    address,
    'localhost',
    '0.0.0.0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '127.1',
    '0x7f000001',
  ]
  return [
    ...hosts.map((host) => `curl -s -m 2 http://${host}:${tcp}/`),
    ...hosts.slice(0, 4).map((host) => `timeout 2 bash -c 'exec 3<>/dev/tcp/${host}/${tcp}; cat <&3'`),
    ...hosts
      .slice(0, 2)
      .map((host) => `python3 -c "import socket;s=socket.create_connection(('${host}',${tcp}),2);print(s.recv(99))"`),
    `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect('${sockets.path}');print(s.recv(99))"`,
    `ln -s ${sockets.path} near.sock; python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect('near.sock');print(s.recv(99))"`,
    `python3 -c "import socket;s=socket.socket(socket.AF_UNIX);s.connect('\\\\0${sockets.abstract}');print(s.recv(99))"`,
    'curl -s -m 2 --unix-socket /var/run/docker.sock http://x/version && echo ESCAPED',
    'ls /run/dbus /run/systemd /run/user 2>/dev/null && echo ESCAPED',
    `python3 -c "import socket;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.sendto(b'x',('${address}',${tcp}));print('${escaped}')"`,
    `python3 -c "import socket;print(socket.getaddrinfo('example.com',80));print('${escaped}')"`,
    `python3 -c "import socket;print(socket.getaddrinfo('example.com\\\\0.evil',80));print('${escaped}')"`,
    `python3 -c "import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW);print('${escaped}')"`,
    `python3 -c "import socket;s=socket.socket(socket.AF_VSOCK,socket.SOCK_STREAM);s.settimeout(2);s.connect((2,1024));print('${escaped}')"`,
  ].map((command) => ({ what: 'network', command }))
}

/** The same attempt, made in another way: by another program, in the background, encoded. */
export function vary({ what, command }: Escape, random: () => number): Escape {
  const quoted = `'${command.replaceAll("'", `'\\''`)}'`
  const encoded = Buffer.from(command).toString('base64')
  const variants = [
    command,
    `bash -c ${quoted}`,
    `(${command}\n) & wait`,
    `echo ${encoded} | base64 -d | bash`,
    `printf %s ${quoted} > s.sh; bash s.sh`,
    `setsid bash -c ${quoted}`,
    `cd one && cd .. && ${command}`,
    `python3 -c 'import base64,subprocess;subprocess.run(["bash","-c",base64.b64decode("${encoded}")])'`,
    `printf %s ${quoted} > s.sh; find s.sh -exec bash {} \\;`,
    `nohup timeout 20 bash -c ${quoted}`,
  ]
  return { what, command: variants[Math.floor(random() * variants.length)] ?? command, plain: command }
}
