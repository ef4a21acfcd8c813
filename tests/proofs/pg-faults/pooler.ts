import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Daemon, freePorts, makeFolder } from './cluster.ts'

/** PgBouncer before the router. A connection to a server is lent for one transaction. */
export class Pooler {
  readonly daemon: Daemon
  readonly port: number

  private constructor(daemon: Daemon, port: number) {
    this.daemon = daemon
    this.port = port
  }

  static async start(folder: string, routerPort: number): Promise<Pooler> {
    const home = makeFolder(join(folder, 'pooler'))
    const [port = 0] = await freePorts(1)
    const settings = join(home, 'pgbouncer.ini')
    writeFileSync(
      settings,
      `[databases]
sessions = host=127.0.0.1 port=${routerPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = users.txt
pool_mode = transaction
default_pool_size = 12
server_login_retry = 1
server_fast_close = 1
so_reuseport = 0
logfile = ${join(home, 'pooler.log')}
pidfile =
`,
    )
    writeFileSync(join(home, 'users.txt'), '"app" ""\n')
    const daemon = new Daemon(home, { program: '/usr/sbin/pgbouncer', options: [settings] })
    daemon.start()
    return new Pooler(daemon, port)
  }
}
