import { describe, inject } from 'vitest'
import { recipeSuite } from './recipe-suite.js'

const nginx = inject('peers').nginx

describe.skipIf(nginx === null)('the nginx recipe', () => {
  recipeSuite(
    {
      file: 'nginx.conf',
      replace: directory => ({ '/run/nginx.pid': `${directory}/nginx.pid` }),
      program: (file, directory) => ({
        command: nginx ?? '',
        args: ['-c', file, '-p', directory, '-g', 'daemon off;'],
      }),
    },
    { sidecarDown: 200 },
  )
})
