class Tine < Formula
  desc "Version control for conversations"
  homepage "{{repository}}"
  version "{{version}}"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "{{download}}/{{archive.macos-arm64}}"
      sha256 "{{sha256.macos-arm64}}"
    end
    on_intel do
      url "{{download}}/{{archive.macos-x86_64}}"
      sha256 "{{sha256.macos-x86_64}}"
    end
  end

  on_linux do
    on_arm do
      url "{{download}}/{{archive.linux-arm64}}"
      sha256 "{{sha256.linux-arm64}}"
    end
    on_intel do
      url "{{download}}/{{archive.linux-x86_64}}"
      sha256 "{{sha256.linux-x86_64}}"
    end
  end

  def install
    bin.install "tine"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/tine.bash" => "tine"
    zsh_completion.install "completions/_tine"
    fish_completion.install "completions/tine.fish"
  end

  test do
    ENV["TINE_STORE"] = testpath/"store"
    assert_match version.to_s, shell_output("#{bin}/tine --version")
    system bin/"tine", "demo"
    system bin/"tine", "store", "verify"
  end
end
