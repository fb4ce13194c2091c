/**
 * Bundles the program for the image: `node .ci/bundle.mjs OUT [NODE]`. One entry, `grapevine.mjs`, and
 * chunks beside it for what commands load when they need it (the Kubernetes client above all, which
 * takes most of a second and 70 MiB). Source maps stay out: stack traces name functions all the same.
 * NODE goes into the entry's first line: the image has no `env` that would look for it.
 */
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundleKubeConfig, kubeConfigApart } from './bundle-kube-config.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const [out, node] = process.argv.slice(2)
if (out === undefined) {
  console.error('usage: node .ci/bundle.mjs OUT [NODE]')
  process.exit(2)
}
const outdir = resolve(out)
rmSync(outdir, { recursive: true, force: true })

/** CommonJS packages in the bundle look for these, which modules do not have. */
const banner = [
  "import { createRequire as __createRequire } from 'node:module'",
  "import { dirname as __dirnameOf } from 'node:path'",
  "import { fileURLToPath as __pathOf } from 'node:url'",
  'const require = __createRequire(import.meta.url)',
  'const __filename = __pathOf(import.meta.url)',
  'const __dirname = __dirnameOf(__filename)',
].join('\n')

const options = {
  absWorkingDir: root,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Names stay as they are: a stack trace in a log needs them. Short names with the long ones put
  // back at run time would cost each closure that a request makes a tenth of a microsecond.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'external',
  banner: { js: banner },
  metafile: true,
  logLevel: 'warning',
}
const { metafile } = await build({
  ...options,
  entryPoints: { grapevine: 'src/main.ts' },
  outdir,
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  plugins: [kubeConfigApart],
})
const apart = await bundleKubeConfig(join(outdir, 'chunks'), options)

const entry = join(outdir, 'grapevine.mjs')
if (node !== undefined) {
  writeFileSync(entry, readFileSync(entry, 'utf8').replace(/^#!.*\n/, `#!${node}\n`))
}
chmodSync(entry, 0o755)
const outputs = { ...metafile.outputs, ...apart.outputs }
const bytes = Object.values(outputs).reduce((sum, { bytes }) => sum + bytes, 0)
const chunks = Object.keys(outputs).length
console.error(
  `bundled ${(bytes / 1e6).toFixed(1)} MB in ${chunks} files; entry ${(statSync(entry).size / 1e3).toFixed(0)} kB`,
)
