<#
.SYNOPSIS
Installs Tine {{version}} for the current user.

.DESCRIPTION
Refuses a download whose checksum is not the one below, and adds the folder of the command to the
user's PATH. To uninstall, delete that folder and its entry in PATH.

Environment:
  TINE_INSTALL_DIR   folder for the command (default: %LOCALAPPDATA%\Programs\tine)
  TINE_DOWNLOAD_URL  folder with the archives of this release, if you use a mirror
#>
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 3

function Install-Tine {
    $version = '{{version}}'
    $checksums = @{
        'windows-x86_64' = '{{sha256.windows-x86_64}}'
    }
    $downloadUrl = if ($env:TINE_DOWNLOAD_URL) { $env:TINE_DOWNLOAD_URL } else { '{{download}}' }
    $installDir = if ($env:TINE_INSTALL_DIR) { $env:TINE_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'Programs\tine' }

    # Windows on ARM runs x86-64 programs.
    if (-not [Environment]::Is64BitOperatingSystem) {
        throw 'There is no binary for 32-bit Windows; build from source instead: {{repository}}'
    }
    $platform = 'windows-x86_64'
    $name = "tine-$version-$platform"
    $scratch = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
    New-Item -ItemType Directory -Path $scratch | Out-Null
    try {
        $archive = Join-Path $scratch "$name.zip"
        Write-Output "Downloading $downloadUrl/$name.zip"
        # Windows PowerShell 5.1 does not use TLS 1.2 by default, and its progress bar is slow.
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
        $ProgressPreference = 'SilentlyContinue'
        Invoke-WebRequest -Uri "$downloadUrl/$name.zip" -OutFile $archive -UseBasicParsing

        $expected = $checksums[$platform]
        $actual = (Get-FileHash -Path $archive -Algorithm SHA256).Hash
        if ($actual -ne $expected) {
            throw "Wrong checksum of $name.zip: expected $expected, got $actual; nothing was installed"
        }
        Expand-Archive -Path $archive -DestinationPath $scratch

        New-Item -ItemType Directory -Path $installDir -Force | Out-Null
        $program = Join-Path $installDir 'tine.exe'
        Copy-Item -Path (Join-Path $scratch "$name\tine.exe") -Destination $program -Force
        Write-Output "Installed $(& $program --version) as $program"

        $path = [Environment]::GetEnvironmentVariable('Path', 'User')
        if (";$path;" -notlike "*;$installDir;*") {
            [Environment]::SetEnvironmentVariable('Path', "$installDir;$path", 'User')
            Write-Output "Added $installDir to your PATH; open a new terminal to run ``tine``."
        }
    } finally {
        Remove-Item -Path $scratch -Recurse -Force
    }
}

Install-Tine
